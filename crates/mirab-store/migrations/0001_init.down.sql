DROP TABLE counters;
DROP TABLE settings;
DROP TABLE buckets;
DROP TABLE events;
DROP TABLE leases;
DROP TABLE task_runs;
DROP TABLE runs;
DROP TABLE projects;
