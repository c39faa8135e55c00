-- Workers outside of the server: a session outlives the server process, its leases are columns of offers.
CREATE TABLE worker_sessions (
    id           INTEGER PRIMARY KEY,
    digest       BLOB    NOT NULL,
    tenant       TEXT    NOT NULL,
    runner_group TEXT    NOT NULL,
    cluster      TEXT,
    opened_at    INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE runner_groups (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    cluster    TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- A worker's token may be limited to one group.
ALTER TABLE tokens ADD COLUMN runner_group TEXT;
