-- Workers that run steps themselves have slots, and a name for people; those that only claim calls have neither.
ALTER TABLE worker_sessions ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN worker TEXT NOT NULL DEFAULT '';
