-- What workers outside of the server reported, as digests: a report that is repeated is recognised by its receipt. The rows
-- of a session are deleted with it, and earlier when its worker cannot repeat them any more.
CREATE TABLE receipts (
    execution BLOB    NOT NULL,
    run       INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    session   INTEGER NOT NULL,
    digest    BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (execution, run, fence)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_of_sessions ON receipts (session, at);
