-- What plans refer to. A revision of an action never changes; a plan has a copy of the revisions that it was made with.
CREATE TABLE actions (
    id          BLOB    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT,
    enabled     INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE action_revisions (
    action   BLOB    NOT NULL,
    revision INTEGER NOT NULL,
    document TEXT    NOT NULL,
    author   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (action, revision)
) STRICT, WITHOUT ROWID;

-- Clusters, sandboxes and route groups. Steps wait until theirs is ready.
CREATE TABLE routing_targets (
    tenant      TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    cluster     TEXT,
    routing_key TEXT,
    ready       INTEGER NOT NULL,
    ready_url   TEXT,
    reason      TEXT,
    polled_at   INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name)
) STRICT, WITHOUT ROWID;

-- The id of a plan follows from its content: tenants with the same plan have workflows of one id, and a tenant may create
-- one again that it has deleted.
CREATE TABLE identified_workflows (
    key        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
INSERT INTO identified_workflows (key, id, tenant, name, status, created_at, updated_at, deleted_at)
    SELECT key, id, tenant, name, status, created_at, updated_at, deleted_at FROM workflows;
DROP TABLE workflows;
ALTER TABLE identified_workflows RENAME TO workflows;
CREATE INDEX workflows_name ON workflows (tenant, name);
CREATE INDEX workflows_id ON workflows (tenant, id);
CREATE UNIQUE INDEX workflows_live ON workflows (tenant, id) WHERE deleted_at IS NULL;
