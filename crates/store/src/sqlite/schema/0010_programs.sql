-- Whether definitions of a tenant may run programs. Those that are there already could.
ALTER TABLE tenants ADD COLUMN programs INTEGER NOT NULL DEFAULT 0;
UPDATE tenants SET programs = 1;
