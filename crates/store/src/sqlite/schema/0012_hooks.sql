-- Requests under /hooks that start workflows: a path and a method belong to one workflow of their tenant.
CREATE TABLE hooks (
    tenant       TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    method       TEXT    NOT NULL,
    workflow     INTEGER NOT NULL,
    require_auth INTEGER NOT NULL,
    claimed_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, path, method)
) STRICT, WITHOUT ROWID;
CREATE INDEX hooks_workflow ON hooks (workflow);

-- Workflows that an earlier version of the program stored. Their definitions are searched for hooks once.
CREATE TABLE hooks_unread (workflow INTEGER PRIMARY KEY) STRICT;
INSERT INTO hooks_unread (workflow) SELECT key FROM workflows WHERE deleted_at IS NULL;

-- Streams of a tenant at a time, and requests per second to each of its hooks without a token: NULL is the server's own, 0 is
-- no limit.
ALTER TABLE tenants ADD COLUMN streams INTEGER;
ALTER TABLE tenants ADD COLUMN hook_rate_limit INTEGER;
