-- Artifacts that belong to an execution which runs at workers outside of the server: those that its workers stored, and those
-- that the engine made of its values. An execution and its sub-executions have the rows of the topmost one. Workers fetch no
-- other artifact: a reference in a result proves nothing, because its worker may have made it up.
CREATE TABLE artifact_owners (
    execution INTEGER NOT NULL,
    artifact  TEXT    NOT NULL,
    PRIMARY KEY (execution, artifact)
) STRICT, WITHOUT ROWID;
-- The last execution from before this table. Executions up to it have the artifacts that their journal names.
CREATE TABLE artifact_owners_since (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    execution INTEGER NOT NULL
) STRICT;
INSERT INTO artifact_owners_since SELECT 1, coalesce(max(key), 0) FROM executions;
