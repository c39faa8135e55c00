-- The execution that this one is a retry of: lists show by which execution another one was retried. Earlier releases did not record it.
ALTER TABLE executions ADD COLUMN retry_of BLOB;
CREATE INDEX executions_retry_of ON executions (retry_of) WHERE retry_of IS NOT NULL;

-- Tokens at gates (part 2) are listed by tenant, and record since when they wait. Both columns are NULL in other rows.
ALTER TABLE parts ADD COLUMN tenant TEXT;
ALTER TABLE parts ADD COLUMN asked_at INTEGER;
UPDATE parts SET tenant = (SELECT e.tenant FROM executions e WHERE e.key = parts.execution),
    asked_at = (SELECT h.at FROM heads h WHERE h.key = parts.execution) WHERE part = 2;
CREATE INDEX parts_asked ON parts (tenant, execution, key) WHERE tenant IS NOT NULL;

-- Held executions are listed by tenant.
CREATE INDEX heads_held ON heads (tenant) WHERE held = 1 AND phase < 10;

-- A list by tag and status reads no execution of another status. The phase is that of the head.
ALTER TABLE tags ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
ALTER TABLE tags ADD COLUMN phase INTEGER NOT NULL DEFAULT 0;
UPDATE tags SET tenant = h.tenant, phase = h.phase FROM heads h WHERE h.key = tags.execution;
CREATE INDEX tags_listed ON tags (tenant, tag, phase, execution);
-- Tags of an execution are changed and deleted with it.
CREATE INDEX tags_of ON tags (execution);
