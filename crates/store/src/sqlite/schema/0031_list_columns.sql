-- Lists of a tenant or a workflow in one phase read no rows of others. The new columns come before the state, which may be long.
CREATE TABLE new_heads (
    key      INTEGER PRIMARY KEY,
    version  INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    phase    INTEGER NOT NULL,
    held     INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    due      INTEGER,
    goes_on  INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    workflow INTEGER,
    state    BLOB    NOT NULL
) STRICT;
INSERT INTO new_heads
    SELECT h.key, h.version, h.last, h.phase, h.held, h.at, h.due, h.goes_on, coalesce(e.tenant, 'default'), e.workflow, h.state
    FROM heads h LEFT JOIN executions e ON e.key = h.key;
DROP TABLE heads;
ALTER TABLE new_heads RENAME TO heads;
CREATE INDEX heads_tenant ON heads (tenant, phase);
CREATE INDEX heads_workflow ON heads (workflow, phase) WHERE workflow IS NOT NULL;
CREATE INDEX heads_due ON heads (due) WHERE due IS NOT NULL;
CREATE INDEX heads_goes_on ON heads (goes_on) WHERE goes_on = 1;
CREATE INDEX heads_ended ON heads (at) WHERE phase >= 10;

-- When the executions of a block of numbers were created: a list of a time reads the blocks of that time only. Numbers rise with
-- creation, but a clock may be set back, so times alone do not bound them.
CREATE TABLE creation_times (
    block    INTEGER PRIMARY KEY,
    earliest INTEGER NOT NULL,
    latest   INTEGER NOT NULL
) STRICT;
INSERT INTO creation_times SELECT key / 4096, min(created_at), max(created_at) FROM executions GROUP BY 1;
