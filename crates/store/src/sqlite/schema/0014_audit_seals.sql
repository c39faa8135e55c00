-- Keyed hashes of audit rows, each over the one before it; NULL where a row was written without a key. The newest row of a
-- tenant is signed as its newest, so that rows cannot be cut off unnoticed.
ALTER TABLE audit ADD COLUMN seal BLOB;
CREATE TABLE audit_heads (
    tenant TEXT    PRIMARY KEY,
    seq    INTEGER NOT NULL,
    seal   BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
