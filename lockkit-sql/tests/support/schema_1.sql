CREATE TABLE lockkit_meta (
  id             INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  boot           TEXT    NOT NULL,            -- the machine's boot that every time below counts from
  fence_floor    INTEGER NOT NULL DEFAULT 0   -- the fence that a new lock row starts from
) STRICT;

-- Liveness: one row for each process and lease time. A missing row is a dead session, for ever.
CREATE TABLE lockkit_session (
  id         BLOB    PRIMARY KEY,
  ttl_ms     INTEGER NOT NULL,
  ver        INTEGER NOT NULL DEFAULT 0,      -- counts the heartbeats
  expires_at INTEGER NOT NULL                 -- ms of CLOCK_BOOTTIME
) STRICT, WITHOUT ROWID;

-- Ownership: free while attempt is null. Rows are never deleted, so a fence never falls.
CREATE TABLE lockkit_lock (
  key         TEXT    PRIMARY KEY,
  session     BLOB,                           -- null while detached
  attempt     BLOB,
  fence       INTEGER NOT NULL,
  expires_at  INTEGER,                        -- a detached hold's own, ms of CLOCK_BOOTTIME
  since       INTEGER NOT NULL DEFAULT 0,     -- ms of CLOCK_BOOTTIME
  label       TEXT    NOT NULL DEFAULT '',
  queued      INTEGER NOT NULL DEFAULT 0,     -- rows in lockkit_waiter
  next_ticket INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE lockkit_waiter (
  key     TEXT    NOT NULL,
  ticket  INTEGER NOT NULL,
  session BLOB    NOT NULL,
  attempt BLOB    NOT NULL,
  fair    INTEGER NOT NULL,
  rung    INTEGER NOT NULL DEFAULT 0,         -- counts the bells
  since   INTEGER NOT NULL,
  label   TEXT    NOT NULL,
  PRIMARY KEY (key, ticket)
) STRICT, WITHOUT ROWID;

-- News for a session: an operator took this hold away. Deleted by its reader.
CREATE TABLE lockkit_eviction (
  session BLOB NOT NULL,
  attempt BLOB NOT NULL,
  key     TEXT NOT NULL,
  PRIMARY KEY (session, attempt)
) STRICT, WITHOUT ROWID;
