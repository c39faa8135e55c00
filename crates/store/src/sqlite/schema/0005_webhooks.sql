-- Executions that somebody wants to hear of: made with them, open until everything is told and acknowledged.
CREATE TABLE tellers (
    execution INTEGER PRIMARY KEY,
    seen      INTEGER NOT NULL DEFAULT 0,
    number    INTEGER NOT NULL DEFAULT 0,
    open      INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX tellers_open ON tellers (execution) WHERE open = 1;

-- What is told, in the order of its numbers per execution. Only the lowest pending one is sent.
CREATE TABLE deliveries (
    place      INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    execution  INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    message    INTEGER NOT NULL,
    event      TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    attempts   INTEGER NOT NULL,
    due        INTEGER,
    answer     INTEGER,
    error      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    UNIQUE (execution, number)
) STRICT;
CREATE INDEX deliveries_tenant ON deliveries (tenant, place);
CREATE INDEX deliveries_pending ON deliveries (execution, number) WHERE state = 'pending';
