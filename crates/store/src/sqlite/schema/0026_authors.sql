-- Who created a workflow; NULL where that was not recorded.
ALTER TABLE workflows ADD COLUMN created_by TEXT;
