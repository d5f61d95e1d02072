-- Numbers are unsigned 64-bit integers kept bit for bit in an INTEGER, times are nanoseconds since the Unix epoch,
-- lists are JSON, balances of buckets are decimal text because they need 128 bits.

CREATE TABLE tasks (
    id              INTEGER PRIMARY KEY,
    pool            TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    resources       TEXT    NOT NULL,
    tags            TEXT    NOT NULL,
    timeout         INTEGER,
    retries         INTEGER NOT NULL,
    retry_base      INTEGER NOT NULL,
    retry_cap       INTEGER NOT NULL,
    key             TEXT,
    digest          INTEGER,
    after           TEXT,
    not_before      INTEGER,
    stage           TEXT    NOT NULL,
    stage_at        INTEGER,
    priority        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    place_seq       INTEGER,
    place_call      INTEGER,
    place_joined_at INTEGER,
    start_by        INTEGER,
    delayed         TEXT,
    end_order       INTEGER,
    end             TEXT,
    end_message     TEXT,
    end_attempts    INTEGER,
    end_priority    INTEGER
) STRICT;

-- What tasks are given: kept until they end.
CREATE TABLE payloads (
    task  INTEGER PRIMARY KEY,
    codec TEXT    NOT NULL,
    bytes BLOB    NOT NULL
) STRICT;

-- What they gave: kept as long as they are remembered.
CREATE TABLE results (
    task  INTEGER PRIMARY KEY,
    codec TEXT    NOT NULL,
    bytes BLOB    NOT NULL
) STRICT;

CREATE TABLE buckets (
    shard         INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    scaled        TEXT    NOT NULL,
    scale         TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    cooling_until INTEGER NOT NULL,
    PRIMARY KEY (shard, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
    shard      INTEGER PRIMARY KEY,
    next_id    INTEGER NOT NULL,
    next_seq   INTEGER NOT NULL,
    next_fence INTEGER NOT NULL,
    submitted  INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    retried    INTEGER NOT NULL,
    completed  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    cancelled  INTEGER NOT NULL,
    expired    INTEGER NOT NULL,
    skipped    INTEGER NOT NULL
) STRICT;
