-- The whole schema of this version. Migrations from older versions lead to exactly this (a test compares them).
--
-- `place` is scope_no << 32 | seq: the rows of one ledger lie together, in order, in every table. An archive holds at
-- most 2^31 - 1 scopes of 2^32 events.

CREATE TABLE tenants (
    tenant_no  INTEGER PRIMARY KEY,
    name       TEXT UNIQUE
) STRICT;

-- A dropped tenant keeps its number and loses its name.

-- Heads. A scope's name is apart, in `names`, so that it can be destroyed while the head stays.
CREATE TABLE scopes (
    scope_no     INTEGER PRIMARY KEY CHECK (scope_no BETWEEN 1 AND 2147483647),
    tenant_no    INTEGER NOT NULL REFERENCES tenants,
    ledger_id    BLOB NOT NULL UNIQUE CHECK (length(ledger_id) = 16),
    next_seq     INTEGER NOT NULL DEFAULT 0,
    edge         BLOB NOT NULL DEFAULT x'',
    epoch        INTEGER NOT NULL DEFAULT 0,
    salt         BLOB NOT NULL,
    recorded_us  INTEGER NOT NULL DEFAULT (-9223372036854775808),
    erased_us    INTEGER
) STRICT;

-- The unscoped shelf of a tenant has the subject '', which no text can name: subjects have at least one character.
CREATE TABLE names (
    tenant_no  INTEGER NOT NULL,
    subject    TEXT NOT NULL,
    scope_no   INTEGER NOT NULL UNIQUE,
    PRIMARY KEY (tenant_no, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    place        INTEGER PRIMARY KEY,
    event_id     BLOB NOT NULL CHECK (length(event_id) = 16),
    kind         INTEGER NOT NULL,
    recorded_us  INTEGER NOT NULL,
    digest       BLOB NOT NULL,
    links        BLOB NOT NULL,
    leaf         BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_id ON events (place >> 32, event_id);

-- Erasures are few and are asked for whenever a content is missing.
CREATE INDEX events_erasures ON events (place) WHERE kind = 6;

-- Append-only, whoever holds the connection. INSERT OR REPLACE would delete a row without firing the DELETE trigger,
-- so an insert over an existing row is refused before it can.
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: UPDATE refused');
END;

CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: DELETE refused');
END;

CREATE TRIGGER events_refuse_replace BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE place = NEW.place)
    OR EXISTS (SELECT 1 FROM events WHERE place >> 32 = NEW.place >> 32 AND event_id = NEW.event_id)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: an event with that place or id exists');
END;

CREATE TABLE contents (
    place         INTEGER PRIMARY KEY,
    salt          BLOB NOT NULL CHECK (length(salt) = 16),
    session_hash  INTEGER,
    body          BLOB NOT NULL
) STRICT;

CREATE INDEX contents_by_session ON contents (place >> 32, session_hash) WHERE session_hash IS NOT NULL;

-- Projections: droppable, rebuilt from the ledger to equal rows.
CREATE TABLE items (
    place           INTEGER PRIMARY KEY,
    kind            INTEGER NOT NULL,
    tier            INTEGER NOT NULL,
    timestamp_us    INTEGER NOT NULL,
    created_us      INTEGER NOT NULL,
    root_seq        INTEGER NOT NULL,
    deleted_seq     INTEGER,
    superseded_seq  INTEGER,
    session_hash    INTEGER,
    speaker_hash    INTEGER,
    key_hash        INTEGER,
    text_hash       INTEGER,
    terms           BLOB NOT NULL,
    retain_us       INTEGER,
    -- The first event that hid it.
    died_seq        INTEGER AS (min(coalesce(deleted_seq, superseded_seq), coalesce(superseded_seq, deleted_seq))) VIRTUAL
) STRICT;

CREATE INDEX items_by_death ON items (place >> 32, died_seq) WHERE died_seq IS NOT NULL;

-- What is visible now, however much before it was deleted.
CREATE INDEX items_live ON items (place) WHERE died_seq IS NULL;

-- The notes of a tier, few among many messages.
CREATE INDEX items_by_tier ON items (place >> 32, tier) WHERE tier > 0;

CREATE INDEX items_by_key ON items (place >> 32, key_hash) WHERE key_hash IS NOT NULL;

CREATE INDEX items_by_retention ON items (place >> 32, retain_us) WHERE retain_us IS NOT NULL;

CREATE INDEX items_by_text ON items (place >> 32, text_hash)
    WHERE text_hash IS NOT NULL AND deleted_seq IS NULL AND superseded_seq IS NULL;

-- One row per chain of versions, at the place of the first.
CREATE TABLE usage (
    place         INTEGER PRIMARY KEY,
    times         INTEGER NOT NULL,
    last_used_us  INTEGER NOT NULL
) STRICT;

-- Primary data outside the ledger.

-- A model is its name, its dimension and what it makes of a fixed text.
CREATE TABLE models (
    model_no   INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    dimension  INTEGER NOT NULL CHECK (dimension > 0),
    probe      BLOB NOT NULL,
    UNIQUE (name, dimension, probe)
) STRICT;

-- One signed byte per dimension. An item without a row under the current model waits for `reindex`; while that runs,
-- the rows of both models stand side by side.
CREATE TABLE vectors (
    place     INTEGER NOT NULL,
    model_no  INTEGER NOT NULL REFERENCES models,
    codes     BLOB NOT NULL,
    PRIMARY KEY (place, model_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
    scope_no      INTEGER NOT NULL,
    request_hash  BLOB NOT NULL,
    fingerprint   BLOB NOT NULL,
    first_seq     INTEGER NOT NULL,
    num_events    INTEGER NOT NULL,
    call          TEXT NOT NULL,
    PRIMARY KEY (scope_no, request_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_seq ON requests (scope_no, first_seq);

-- Erasures whose bytes the files may still hold.
CREATE TABLE pending_clean (
    receipt_id  BLOB PRIMARY KEY,
    ledger_id   BLOB NOT NULL,
    at_us       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
