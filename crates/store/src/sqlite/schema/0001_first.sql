-- The application id of the file says whose it is: "WDLS".
PRAGMA application_id = 0x57444c53;

-- Everywhere else an execution is its small number here. Numbers rise with creation, so what is worked on together
-- lies together, and the newest is the highest.
CREATE TABLE executions (
    key        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE,
    definition INTEGER,
    net        BLOB    NOT NULL,
    parent     BLOB,
    trigger    TEXT    NOT NULL,
    inputs     TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- One commit is one row: all its records in one value. Appended in order of the commits of all executions. Rows of
-- one execution are a chain: each names the one before it, the head names the last. An index over all of them would
-- cost as much as everything else a commit writes, so only some rows of an execution have a mark and are in it.
CREATE TABLE journal (
    position  INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    before    INTEGER,
    mark      INTEGER,
    commit_id BLOB    NOT NULL,
    format    INTEGER NOT NULL,
    checksum  INTEGER NOT NULL,
    records   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX journal_marks ON journal (execution, version) WHERE mark IS NOT NULL;

-- Rewritten by every commit. The columns with an index come before the state and seldom change.
CREATE TABLE heads (
    key     INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    phase   INTEGER NOT NULL,
    held    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    due     INTEGER,
    goes_on INTEGER NOT NULL,
    state   BLOB    NOT NULL
) STRICT;
CREATE INDEX heads_phase ON heads (phase);
CREATE INDEX heads_due ON heads (due) WHERE due IS NOT NULL;
CREATE INDEX heads_goes_on ON heads (goes_on) WHERE goes_on = 1;

-- No row: the context is empty.
CREATE TABLE contexts (
    key INTEGER PRIMARY KEY,
    ctx BLOB NOT NULL
) STRICT;

-- Live step-runs, open offers (class 0) before all others. A lease and its cursor are columns of the offer.
CREATE TABLE step_runs (
    class      INTEGER NOT NULL,
    execution  INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    fence      INTEGER,
    due        INTEGER,
    session    INTEGER,
    claimed_at INTEGER,
    started_at INTEGER,
    cursor     TEXT,
    state      BLOB    NOT NULL,
    PRIMARY KEY (class, execution, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX step_runs_due ON step_runs (due, execution, run) WHERE due IS NOT NULL;

CREATE TABLE parts (
    execution INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    key       BLOB    NOT NULL,
    due       INTEGER,
    value     BLOB    NOT NULL,
    PRIMARY KEY (execution, part, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_due ON parts (due, execution, key) WHERE due IS NOT NULL;

-- Which journal rows hold the values of a step-run: its list of items, its output.
CREATE TABLE facts (
    execution INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (execution, run, position)
) STRICT, WITHOUT ROWID;

-- Numbers of mail are never used twice, so that an answer is never taken for another's. Settled mail that somebody
-- waits for stays until it is fetched.
CREATE TABLE inbox (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    target       BLOB    NOT NULL,
    letter       TEXT    NOT NULL,
    wants_answer INTEGER NOT NULL,
    settled      INTEGER NOT NULL DEFAULT 0,
    refused      TEXT,
    at           INTEGER NOT NULL
) STRICT;

CREATE TABLE stops (
    execution INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    session   INTEGER NOT NULL,
    PRIMARY KEY (execution, run, fence)
) STRICT, WITHOUT ROWID;

CREATE TABLE nets (
    key    INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    spec   TEXT NOT NULL
) STRICT;

CREATE TABLE definitions (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    dialect  TEXT    NOT NULL,
    net      BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    workload TEXT    NOT NULL,
    source   TEXT    NOT NULL,
    UNIQUE (name, version)
) STRICT;

CREATE TABLE logs (
    position  INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    step      TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    lines     BLOB    NOT NULL
) STRICT;
CREATE INDEX logs_execution ON logs (execution);
