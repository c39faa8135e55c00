-- Executions that were being worked on when a process died, and those that are not worked on any more. The id is kept
-- without a reference: an execution whose own rows are damaged is listed here, too.
CREATE TABLE quarantine (
    execution      BLOB PRIMARY KEY,
    -- Version of the execution at its newest death: one that has risen since then has made progress.
    version        INTEGER NOT NULL,
    deaths         INTEGER NOT NULL,
    -- NULL: only suspected so far.
    quarantined_at INTEGER,
    reason         TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX quarantined ON quarantine (quarantined_at) WHERE quarantined_at IS NOT NULL;
