DROP TABLE totals;
DROP TABLE durations;
ALTER TABLE buckets DROP COLUMN cooling_until;
ALTER TABLE leases DROP COLUMN passed;
ALTER TABLE leases DROP COLUMN longest;
ALTER TABLE leases DROP COLUMN shortest;
ALTER TABLE leases DROP COLUMN tokens;
ALTER TABLE task_runs DROP COLUMN delayed;
ALTER TABLE runs DROP COLUMN delayed;
