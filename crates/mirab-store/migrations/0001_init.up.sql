-- Numbers are unsigned 64-bit integers kept bit for bit in an INTEGER, times are nanoseconds since the Unix epoch,
-- lists and maps are JSON, balances of buckets are decimal text because they need 128 bits.

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id              INTEGER PRIMARY KEY,
    project         TEXT    NOT NULL,
    flow            TEXT    NOT NULL,
    file            TEXT    NOT NULL,
    function        TEXT    NOT NULL,
    params          TEXT    NOT NULL,
    priority        INTEGER NOT NULL,
    tags            TEXT    NOT NULL,
    needs           TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    message         TEXT,
    attempt         INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    crashes         INTEGER NOT NULL,
    retries         INTEGER NOT NULL,
    retry_delay     INTEGER NOT NULL,
    crash_retries   INTEGER NOT NULL,
    place_seq       INTEGER,
    place_call      INTEGER,
    place_joined_at INTEGER,
    created_at      INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    result          TEXT,
    error_kind      TEXT,
    error_message   TEXT,
    error_traceback TEXT,
    idempotency_key TEXT
) STRICT;

-- A start reads the live runs only, however many have ended. The words are the terminal states.
CREATE INDEX runs_live ON runs (id) WHERE state NOT IN ('Completed', 'Failed', 'Cancelled', 'Crashed', 'Skipped');
CREATE INDEX runs_by_flow ON runs (project, flow, id);
CREATE INDEX runs_by_state ON runs (state, id);
CREATE UNIQUE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE task_runs (
    id              INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL,
    run_attempt     INTEGER NOT NULL,
    key             TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    needs           TEXT    NOT NULL,
    parent          INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    attempt         INTEGER NOT NULL,
    retries         INTEGER NOT NULL,
    retry_delay     INTEGER NOT NULL,
    place_seq       INTEGER,
    place_call      INTEGER,
    place_joined_at INTEGER,
    created_at      INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    error_kind      TEXT,
    error_message   TEXT,
    error_traceback TEXT
) STRICT;

CREATE INDEX task_runs_by_run ON task_runs (run, id);

CREATE TABLE leases (
    id              INTEGER PRIMARY KEY,
    fence           INTEGER NOT NULL,
    kind            TEXT    NOT NULL,
    takes           TEXT    NOT NULL,
    covered         TEXT    NOT NULL,
    priority        INTEGER NOT NULL,
    place_seq       INTEGER NOT NULL,
    place_call      INTEGER NOT NULL,
    place_joined_at INTEGER NOT NULL,
    parent          INTEGER,
    started_at      INTEGER NOT NULL,
    worker          TEXT,
    request_id      TEXT
) STRICT;

CREATE TABLE events (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    run    INTEGER NOT NULL,
    task   INTEGER,
    kind   TEXT    NOT NULL,
    state  TEXT,
    reason TEXT    NOT NULL,
    cause  TEXT    NOT NULL
) STRICT;

CREATE INDEX events_by_run ON events (run, seq);

CREATE TABLE buckets (
    name   TEXT PRIMARY KEY,
    scaled TEXT    NOT NULL,
    scale  TEXT    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row, or none before the first commit.
CREATE TABLE counters (
    id         INTEGER PRIMARY KEY CHECK (id = 0),
    next_id    INTEGER NOT NULL,
    next_seq   INTEGER NOT NULL,
    next_fence INTEGER NOT NULL,
    next_event INTEGER NOT NULL
) STRICT;
