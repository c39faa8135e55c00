-- Copies of artifacts in an object store. `due` is the time of the next work on one. While an attempt is under way it is claimed:
-- `attempts` is the number of the attempt, and `due` the time at which it counts as lost.
CREATE TABLE objects (
    tenant   TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    bytes    INTEGER NOT NULL,
    state    TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    claimed  INTEGER NOT NULL,
    due      INTEGER,
    error    TEXT,
    put_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX objects_due ON objects (tenant, due) WHERE due IS NOT NULL;
-- The object store that the rows are about; at most one row.
CREATE TABLE object_place (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    place TEXT    NOT NULL
) STRICT;
CREATE INDEX objects_claimed ON objects (claimed) WHERE claimed = 1;
