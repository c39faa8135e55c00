-- What a schedule belongs to: the definition that its http or shell target became, and the workflow whose trigger made it.
ALTER TABLE schedules ADD COLUMN definition BLOB;
ALTER TABLE schedules ADD COLUMN workflow BLOB;
-- Receives a request for every dead letter of the schedule.
ALTER TABLE schedules ADD COLUMN dead_letter_url TEXT;
UPDATE schedules SET definition = unhex(spec ->> '$.definition') WHERE spec ->> '$.definition' IS NOT NULL;
CREATE INDEX schedules_of_definition ON schedules (definition) WHERE definition IS NOT NULL;
CREATE INDEX schedules_of_workflow ON schedules (workflow) WHERE workflow IS NOT NULL;

CREATE INDEX schedule_runs_nominal ON schedule_runs (schedule, nominal_time);
CREATE INDEX schedule_runs_ended ON schedule_runs (finished_at) WHERE finished_at IS NOT NULL;

-- Requests about dead letters that are to be sent, written with the dead letter. `due` is null once one was delivered or
-- given up.
CREATE TABLE dead_letter_notices (
    letter     BLOB    NOT NULL PRIMARY KEY,
    url        TEXT    NOT NULL,
    attempts   INTEGER NOT NULL,
    due        INTEGER,
    error_text TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letter_notices_due ON dead_letter_notices (due) WHERE due IS NOT NULL;
