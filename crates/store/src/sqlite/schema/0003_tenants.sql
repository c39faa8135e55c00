-- A workflow is all versions of a definition. Names may repeat; an id never does.
CREATE TABLE workflows (
    key        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE INDEX workflows_name ON workflows (tenant, name);

INSERT INTO workflows (id, tenant, name, status, created_at, updated_at)
    SELECT randomblob(16), 'default', name, 'active', min(at), max(at) FROM definitions GROUP BY name ORDER BY min(id);

CREATE TABLE versions (
    id       INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    dialect  TEXT    NOT NULL,
    net      BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    workload TEXT    NOT NULL,
    source   TEXT    NOT NULL,
    UNIQUE (workflow, version)
) STRICT;
INSERT INTO versions SELECT d.id, w.key, d.name, d.version, d.dialect, d.net, d.at, d.workload, d.source
    FROM definitions d JOIN workflows w ON w.name = d.name;
DROP TABLE definitions;
ALTER TABLE versions RENAME TO definitions;

-- Lists go by tenant and by workflow, newest first.
ALTER TABLE executions ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
ALTER TABLE executions ADD COLUMN workflow INTEGER;
ALTER TABLE executions ADD COLUMN priority INTEGER NOT NULL DEFAULT 2;
ALTER TABLE executions ADD COLUMN correlation TEXT;
ALTER TABLE executions ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
UPDATE executions SET workflow = (SELECT d.workflow FROM definitions d WHERE d.id = executions.definition);
CREATE INDEX executions_tenant ON executions (tenant);
CREATE INDEX executions_workflow ON executions (workflow);
CREATE INDEX executions_correlation ON executions (correlation) WHERE correlation IS NOT NULL;
CREATE INDEX executions_parent ON executions (parent) WHERE parent IS NOT NULL;

CREATE TABLE tags (
    tag       TEXT    NOT NULL,
    execution INTEGER NOT NULL,
    PRIMARY KEY (tag, execution)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    workflow  INTEGER NOT NULL,
    key       TEXT    NOT NULL,
    request   BLOB    NOT NULL,
    execution INTEGER NOT NULL,
    PRIMARY KEY (workflow, key)
) STRICT, WITHOUT ROWID;

ALTER TABLE step_runs ADD COLUMN progress TEXT;
