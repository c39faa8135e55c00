-- Why an execution's receiver is told nothing more; NULL while it is.
ALTER TABLE tellers ADD COLUMN given_up TEXT;
