-- Position up to which `usage` counts journal rows and log chunks. Later ones are in no row of `usage` yet: a transaction that
-- appends one row does not write a second one. Whoever reads the usage adds them.
CREATE TABLE usage_counted (position INTEGER NOT NULL) STRICT;

INSERT INTO usage_counted (position)
    SELECT max(coalesce((SELECT max(position) FROM journal), 0), coalesce((SELECT max(position) FROM logs), 0));
