-- What workflows remember beyond their executions: values by key, the newest of each key.
CREATE TABLE memories (
    tenant   TEXT    NOT NULL,
    workflow BLOB    NOT NULL,
    key      TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX memories_newest ON memories (tenant, workflow, at);
