-- When work begins by itself. The text columns `policy` and `retry` are read by the rules of stores, `spec` by its server.
CREATE TABLE schedules (
    id          BLOB    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    enabled     INTEGER NOT NULL,
    spec        TEXT    NOT NULL,
    policy      TEXT    NOT NULL,
    retry       TEXT    NOT NULL,
    revision    INTEGER NOT NULL,
    paused_at   INTEGER,
    next_run_at INTEGER,
    last_run_at INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_listed ON schedules (tenant, id);
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE enabled = 1;

-- Attempts at occurrences. A run that waits is due at `due_time`.
CREATE TABLE schedule_runs (
    id                   BLOB    NOT NULL PRIMARY KEY,
    tenant               TEXT    NOT NULL,
    schedule             BLOB    NOT NULL,
    occurrence_key       TEXT    NOT NULL,
    attempt              INTEGER NOT NULL,
    nominal_time         INTEGER NOT NULL,
    due_time             INTEGER NOT NULL,
    status               TEXT    NOT NULL,
    claimed_by_worker_id TEXT,
    claim_expires_at     INTEGER,
    started_at           INTEGER,
    finished_at          INTEGER,
    http_status_code     INTEGER,
    exit_code            INTEGER,
    result_json          TEXT,
    error_text           TEXT,
    retry_available_at   INTEGER,
    execution            BLOB,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    UNIQUE (occurrence_key, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_runs_listed ON schedule_runs (tenant, id);
CREATE INDEX schedule_runs_of ON schedule_runs (schedule, id);
CREATE INDEX schedule_runs_waiting ON schedule_runs (due_time, id) WHERE status IN ('pending', 'retry_scheduled');
CREATE INDEX schedule_runs_queued ON schedule_runs (schedule, due_time, id) WHERE status IN ('pending', 'retry_scheduled');
CREATE INDEX schedule_runs_active ON schedule_runs (schedule, id) WHERE status IN ('claimed', 'running');

CREATE TABLE worker_leases (
    run          BLOB    NOT NULL PRIMARY KEY,
    worker_id    TEXT    NOT NULL,
    lease_key    INTEGER NOT NULL,
    acquired_at  INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_leases_expiry ON worker_leases (expires_at);
CREATE INDEX worker_leases_holder ON worker_leases (worker_id);

CREATE TABLE execution_receipts (
    run          BLOB    NOT NULL,
    number       INTEGER NOT NULL,
    receipt_kind TEXT    NOT NULL,
    content_type TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- Occurrences whose last attempt failed.
CREATE TABLE dead_letters (
    id             BLOB    NOT NULL PRIMARY KEY,
    tenant         TEXT    NOT NULL,
    run            BLOB    NOT NULL,
    schedule       BLOB    NOT NULL,
    occurrence_key TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    payload_json   TEXT,
    created_at     INTEGER NOT NULL,
    resolved_at    INTEGER,
    resolution     TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letters_listed ON dead_letters (tenant, id);
CREATE INDEX dead_letters_of ON dead_letters (schedule);
