-- Counted the changes of a tenant's secrets. Nothing reads it: a step is given the secrets that it names, and no other
-- value is redacted.
DROP TABLE secret_changes;
