-- What the gate must remember besides units: tokens and expectations of leases, who was passed and delayed, durations,
-- and totals of paused resources. Leases of an earlier version are expected to take what nothing is known of takes.

ALTER TABLE runs ADD COLUMN delayed TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task_runs ADD COLUMN delayed TEXT NOT NULL DEFAULT '[]';

ALTER TABLE leases ADD COLUMN tokens TEXT NOT NULL DEFAULT '[]';
ALTER TABLE leases ADD COLUMN shortest INTEGER NOT NULL DEFAULT 10000000000;
ALTER TABLE leases ADD COLUMN longest INTEGER;
ALTER TABLE leases ADD COLUMN passed TEXT NOT NULL DEFAULT '[]';

ALTER TABLE buckets ADD COLUMN cooling_until INTEGER NOT NULL DEFAULT 0;

CREATE TABLE durations (
    learner TEXT NOT NULL,
    name    TEXT NOT NULL,
    recent  TEXT NOT NULL,
    PRIMARY KEY (learner, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE totals (
    name TEXT PRIMARY KEY,
    most INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
