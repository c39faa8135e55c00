-- A session of the web page ends with the token whose link began it.
ALTER TABLE tokens ADD COLUMN issuer BLOB;
UPDATE tokens SET issuer = (SELECT of.digest FROM tokens of WHERE of.id = tokens.created_by) WHERE id GLOB 'sess_*';
