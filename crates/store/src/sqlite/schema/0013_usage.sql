-- Bytes that tenants use, counted by the batches that add or remove them.
CREATE TABLE usage (
    tenant      TEXT    PRIMARY KEY,
    journal     INTEGER NOT NULL DEFAULT 0,
    logs        INTEGER NOT NULL DEFAULT 0,
    artifacts   INTEGER NOT NULL DEFAULT 0,
    definitions INTEGER NOT NULL DEFAULT 0,
    memories    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

INSERT INTO usage (tenant, journal, logs, definitions, memories)
    SELECT tenant, sum(journal), sum(logs), sum(definitions), sum(memories) FROM (
        SELECT e.tenant AS tenant, length(j.records) AS journal, 0 AS logs, 0 AS definitions, 0 AS memories
            FROM journal j JOIN executions e ON e.key = j.execution
        UNION ALL SELECT e.tenant, 0, length(l.lines), 0, 0 FROM logs l JOIN executions e ON e.key = l.execution
        UNION ALL SELECT w.tenant, 0, 0, octet_length(d.source) + octet_length(d.workload), 0
            FROM definitions d JOIN workflows w ON w.key = d.workflow
        UNION ALL SELECT tenant, 0, 0, 0, octet_length(value) FROM memories
    ) GROUP BY tenant;

-- Bytes that a tenant may use: NULL is the server's own, 0 is no limit.
ALTER TABLE tenants ADD COLUMN storage INTEGER;

-- Whose a forgotten execution was; NULL where an earlier version forgot it.
ALTER TABLE forgotten ADD COLUMN tenant TEXT;
