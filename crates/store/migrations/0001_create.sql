-- Event logs that were looked at: what lists show of them, or why they cannot be read.
CREATE TABLE logs (
    path           TEXT    PRIMARY KEY,
    -- Mark: tells whether the log has changed since.
    bytes          INTEGER NOT NULL,
    modified_ms    INTEGER NOT NULL,
    files          INTEGER NOT NULL,
    -- Which reader made this; what another one made is not used.
    reader         TEXT    NOT NULL,
    application_id TEXT,
    attempt_id     TEXT,
    head           TEXT,
    error          TEXT,
    -- Size of the application's file; NULL when there is none.
    file_bytes     INTEGER,
    -- Grows with each use; the smallest goes first.
    used           INTEGER NOT NULL,
    CHECK ((head IS NULL) = (error IS NOT NULL)),
    CHECK ((head IS NULL) = (application_id IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX logs_by_use ON logs (used);

-- Access tokens. Of the secret only its SHA-256.
CREATE TABLE tokens (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    secret_sha256 BLOB    NOT NULL UNIQUE,
    created_ms    INTEGER NOT NULL,
    expires_ms    INTEGER,
    last_used_ms  INTEGER
) STRICT, WITHOUT ROWID;

-- Who did what to which object. Rows are added, never changed.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms   INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    address TEXT    NOT NULL
) STRICT;

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append only');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append only');
END;
