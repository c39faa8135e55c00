-- The user who requested a run by hand; its retries have the same one.
ALTER TABLE schedule_runs ADD COLUMN requested_by TEXT;
