-- The highest number that a forgotten execution had. A number is never given twice: what is left of a forgotten execution
-- goes by its number, and whoever waits for new executions looks behind the newest number that he knows.
CREATE TABLE highest_forgotten (key INTEGER NOT NULL) STRICT;

INSERT INTO highest_forgotten (key) SELECT coalesce(max(key), 0) FROM forgotten;
