-- Jobs. The definition of one that was deleted stays, its runs name it.
CREATE TABLE jobs (
    job_id      INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,
    -- In lower case, for the filter by name.
    name_folded TEXT    NOT NULL,
    creator     TEXT    NOT NULL,
    created_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    changed_by  TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    settings    TEXT    NOT NULL,
    -- Last time for which its trigger planned a run; before the first, when it was set.
    planned_ms  INTEGER,
    deleted_ms  INTEGER
) STRICT;

CREATE INDEX jobs_by_name ON jobs (name_folded, job_id) WHERE deleted_ms IS NULL;

-- What a job was before each change of it.
CREATE TABLE job_versions (
    job_id     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    changed_by TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    settings   TEXT    NOT NULL,
    PRIMARY KEY (job_id, version)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER job_versions_are_kept BEFORE UPDATE OF settings ON jobs WHEN OLD.version <> NEW.version
BEGIN
    INSERT INTO job_versions VALUES (OLD.job_id, OLD.version, OLD.changed_ms, OLD.changed_by, OLD.name, OLD.settings);
END;

-- Runs of jobs, and those that were submitted without one.
CREATE TABLE runs (
    run_id      INTEGER PRIMARY KEY,
    job_id      INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    run_type    TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    creator     TEXT    NOT NULL,
    -- `trigger` of the API.
    cause       TEXT    NOT NULL,
    -- What it was started with: settings, parameters.
    about       TEXT    NOT NULL,
    life_cycle  TEXT    NOT NULL,
    result      TEXT,
    code        TEXT,
    message     TEXT    NOT NULL,
    start_ms    INTEGER NOT NULL,
    -- When it left the queue; NULL: never so far.
    admitted_ms INTEGER,
    -- NULL: not over.
    end_ms      INTEGER,
    -- Its rounds: the original and the repairs.
    rounds      TEXT    NOT NULL,
    -- The engine's own state of it; NULL: it never began.
    core        TEXT
) STRICT;

CREATE INDEX runs_by_start ON runs (start_ms, run_id);
CREATE INDEX runs_by_job ON runs (job_id, start_ms, run_id);
CREATE INDEX runs_by_type ON runs (run_type, start_ms, run_id);
CREATE INDEX runs_open ON runs (start_ms, run_id) WHERE end_ms IS NULL;
CREATE INDEX runs_open_by_job ON runs (job_id, start_ms, run_id) WHERE end_ms IS NULL;

-- Task runs: one a task and attempt, and one an item and attempt of a for-each.
CREATE TABLE task_runs (
    task_run_id INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    -- Of the task in its run, from 0.
    position    INTEGER NOT NULL,
    -- Of the list of a for-each, from 0.
    item        INTEGER,
    task_key    TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    -- 0: the original run; n: its n-th repair.
    round       INTEGER NOT NULL,
    life_cycle  TEXT    NOT NULL,
    result      TEXT,
    code        TEXT,
    message     TEXT    NOT NULL,
    start_ms    INTEGER,
    running_ms  INTEGER,
    end_ms      INTEGER,
    -- Names the start of its work in the run.
    epoch       INTEGER,
    -- The engine's own state of the work; NULL: there is none now.
    work        TEXT,
    -- What is known of it besides: resolved values, its error.
    detail      TEXT    NOT NULL
) STRICT;

CREATE INDEX task_runs_by_run ON task_runs (run_id, position, item, attempt);

-- The engine's own state of the tasks of a run.
CREATE TABLE run_tasks (
    run_id   INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    position INTEGER NOT NULL,
    core     TEXT    NOT NULL,
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;

-- Every change of state. Rows are added, never changed.
CREATE TABLE transitions (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id      INTEGER NOT NULL,
    -- NULL: of the run itself.
    task_run_id INTEGER,
    life_cycle  TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;

CREATE INDEX transitions_by_run ON transitions (run_id, seq);

-- The same token, the same run. Job 0: runs that were submitted without a job.
CREATE TABLE idempotency (
    job_id INTEGER NOT NULL,
    token  TEXT    NOT NULL,
    run_id INTEGER NOT NULL,
    PRIMARY KEY (job_id, token)
) STRICT, WITHOUT ROWID;

-- What is kept of a run besides its own rows goes with it.
CREATE INDEX idempotency_by_run ON idempotency (run_id);
CREATE TRIGGER runs_are_forgotten AFTER DELETE ON runs
BEGIN
    DELETE FROM idempotency WHERE run_id = OLD.run_id;
    DELETE FROM transitions WHERE run_id = OLD.run_id;
END;

-- Up to which number ids have been given out.
CREATE TABLE ids (given INTEGER NOT NULL) STRICT;
INSERT INTO ids VALUES (0);
