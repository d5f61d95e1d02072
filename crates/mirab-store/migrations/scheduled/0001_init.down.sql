DROP TABLE counters;
DROP TABLE buckets;
DROP TABLE results;
DROP TABLE payloads;
DROP TABLE tasks;
