-- Executions that are gone, and whose journal, values and log lines still have to go: `last` is the newest journal row
-- that is left.
CREATE TABLE forgotten (
    key  INTEGER PRIMARY KEY,
    last INTEGER
) STRICT;

CREATE INDEX heads_ended ON heads (at) WHERE phase >= 10;
