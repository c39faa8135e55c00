-- The limits of a tenant as one object, so that a new limit needs no column.
ALTER TABLE tenants ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
UPDATE tenants SET limits = json_object('rate_limit', rate_limit, 'rate_burst', rate_burst,
    'open_executions', open_executions, 'slots', slots, 'streams', streams, 'hook_rate_limit', hook_rate_limit,
    'storage', storage);
ALTER TABLE tenants DROP COLUMN rate_limit;
ALTER TABLE tenants DROP COLUMN rate_burst;
ALTER TABLE tenants DROP COLUMN open_executions;
ALTER TABLE tenants DROP COLUMN slots;
ALTER TABLE tenants DROP COLUMN streams;
ALTER TABLE tenants DROP COLUMN hook_rate_limit;
ALTER TABLE tenants DROP COLUMN storage;
