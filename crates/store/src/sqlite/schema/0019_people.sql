-- Step-runs that wait for a person (class 2) are listed by tenant, and record since when they wait. Both columns are NULL in
-- other rows.
ALTER TABLE step_runs ADD COLUMN tenant TEXT;
ALTER TABLE step_runs ADD COLUMN asked_at INTEGER;
CREATE INDEX step_runs_asked ON step_runs (tenant, execution, run) WHERE tenant IS NOT NULL;

-- Roles of the holder of a token, which policies of definitions ask for: a JSON list of names.
ALTER TABLE tokens ADD COLUMN roles TEXT NOT NULL DEFAULT '[]';
