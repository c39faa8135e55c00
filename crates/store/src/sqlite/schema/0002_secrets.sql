-- Values of secrets, sealed: what `sealed` holds opens with the master key `key` alone, and only as this tenant's
-- secret of this name and version.
CREATE TABLE secrets (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    sealed     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Counts the changes of a tenant's secrets, so that whoever knows their values learns cheaply that there are others.
CREATE TABLE secret_changes (
    tenant TEXT    PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
