-- Who may do what for which tenant. Limits: NULL is the server's own.
CREATE TABLE tenants (
    id              TEXT    PRIMARY KEY,
    name            TEXT    NOT NULL,
    rate_limit      INTEGER,
    rate_burst      INTEGER,
    open_executions INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A token is a user. Of the token itself only the digest is here.
CREATE TABLE tokens (
    id           TEXT    PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    digest       BLOB    NOT NULL UNIQUE,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

-- Appended, never changed.
CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY,
    tenant TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    role   TEXT    NOT NULL,
    action TEXT    NOT NULL,
    target TEXT    NOT NULL,
    details TEXT   NOT NULL
) STRICT;
CREATE INDEX audit_tenant ON audit (tenant);
