-- The person who holds a token, if the person has another identity, too: the id of another token, `jwt:` and a subject, or
-- `owner` for the token that the server created, whose holder owns the data folder.
ALTER TABLE tokens ADD COLUMN person TEXT;
UPDATE tokens SET person = 'owner' WHERE created_by = 'server';
