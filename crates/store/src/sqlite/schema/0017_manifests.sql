-- What the compiler knows about a version beside its net, and the number of that compiler: 0 has written none. Versions of
-- older compilers are compiled again when the store is opened.
ALTER TABLE definitions ADD COLUMN compiler INTEGER NOT NULL DEFAULT 0;
ALTER TABLE definitions ADD COLUMN manifest TEXT NOT NULL DEFAULT '{}';
CREATE INDEX definitions_compiler ON definitions (compiler);
