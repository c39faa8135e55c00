-- Slots of workers that a tenant may have at a time: NULL is the server's own, 0 is no limit.
ALTER TABLE tenants ADD COLUMN slots INTEGER;
