-- From version 1, which had mutexes only. Nothing that version 1 reads or writes is changed, so its
-- processes may go on beside ours.
ALTER TABLE lockkit_lock ADD COLUMN size INTEGER;
ALTER TABLE lockkit_lock ADD COLUMN latch_of INTEGER;
ALTER TABLE lockkit_lock ADD COLUMN latch_left INTEGER;
ALTER TABLE lockkit_lock ADD COLUMN asked BLOB;
ALTER TABLE lockkit_waiter ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lockkit_waiter ADD COLUMN amount INTEGER;
ALTER TABLE lockkit_waiter ADD COLUMN prefer INTEGER;
ALTER TABLE lockkit_waiter ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;
-- Holds of everything but mutexes: there may be several of one key.
CREATE TABLE lockkit_holder (
  key        TEXT    NOT NULL,
  attempt    BLOB    NOT NULL,
  session    BLOB,                            -- null while detached
  mode       INTEGER NOT NULL,                -- 0 exclusive, 1 shared, 2 permits, 3 a segment
  amount     INTEGER,                         -- how many permits, or which segment
  fence      INTEGER NOT NULL,
  expires_at INTEGER,                         -- a detached hold's own, ms of CLOCK_BOOTTIME
  since      INTEGER NOT NULL,
  label      TEXT    NOT NULL,
  asked      INTEGER NOT NULL DEFAULT 0,      -- whether its holder was asked to let go
  PRIMARY KEY (key, attempt)
) STRICT, WITHOUT ROWID;
-- News for a session: somebody asks it to let go of this hold. Deleted by its reader.
CREATE TABLE lockkit_request (
  session BLOB NOT NULL,
  attempt BLOB NOT NULL,
  key     TEXT NOT NULL,
  PRIMARY KEY (session, attempt)
) STRICT, WITHOUT ROWID;

-- Who took part in a latch that is still closed.
CREATE TABLE lockkit_arrival (
  key         TEXT NOT NULL,
  participant TEXT NOT NULL,
  PRIMARY KEY (key, participant)
) STRICT, WITHOUT ROWID;
UPDATE lockkit_meta SET schema_version = 2;
