-- The tables of jobs as in SQLite, with the types of PostgreSQL.

-- Jobs. The definition of one that was deleted stays, its runs name it.
CREATE TABLE jobs (
    job_id      BIGINT  PRIMARY KEY,
    name        TEXT    NOT NULL,
    -- In lower case, for the filter by name.
    name_folded TEXT    NOT NULL,
    creator     TEXT    NOT NULL,
    created_ms  BIGINT  NOT NULL,
    changed_ms  BIGINT  NOT NULL,
    changed_by  TEXT    NOT NULL,
    version     BIGINT  NOT NULL,
    settings    TEXT    NOT NULL,
    -- Last time for which its trigger planned a run; before the first, when it was set.
    planned_ms  BIGINT,
    deleted_ms  BIGINT
);

CREATE INDEX jobs_by_name ON jobs (name_folded, job_id) WHERE deleted_ms IS NULL;

-- What a job was before each change of it.
CREATE TABLE job_versions (
    job_id     BIGINT  NOT NULL,
    version    BIGINT  NOT NULL,
    changed_ms BIGINT  NOT NULL,
    changed_by TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    settings   TEXT    NOT NULL,
    PRIMARY KEY (job_id, version)
);

CREATE FUNCTION keep_job_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_versions VALUES (OLD.job_id, OLD.version, OLD.changed_ms, OLD.changed_by, OLD.name, OLD.settings);
    RETURN NEW;
END
$$;
CREATE TRIGGER job_versions_are_kept BEFORE UPDATE OF settings ON jobs
FOR EACH ROW WHEN (OLD.version <> NEW.version) EXECUTE FUNCTION keep_job_version();

-- Runs of jobs, and those that were submitted without one.
CREATE TABLE runs (
    run_id      BIGINT  PRIMARY KEY,
    job_id      BIGINT  NOT NULL,
    number      BIGINT  NOT NULL,
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
    start_ms    BIGINT  NOT NULL,
    -- When it left the queue; NULL: never so far.
    admitted_ms BIGINT,
    -- NULL: not over.
    end_ms      BIGINT,
    -- Its rounds: the original and the repairs.
    rounds      TEXT    NOT NULL,
    -- The engine's own state of it; NULL: it never began.
    core        TEXT
);

CREATE INDEX runs_by_start ON runs (start_ms, run_id);
CREATE INDEX runs_by_job ON runs (job_id, start_ms, run_id);
CREATE INDEX runs_by_type ON runs (run_type, start_ms, run_id);
CREATE INDEX runs_open ON runs (start_ms, run_id) WHERE end_ms IS NULL;
CREATE INDEX runs_open_by_job ON runs (job_id, start_ms, run_id) WHERE end_ms IS NULL;

-- Task runs: one a task and attempt, and one an item and attempt of a for-each.
CREATE TABLE task_runs (
    task_run_id BIGINT  PRIMARY KEY,
    run_id      BIGINT  NOT NULL REFERENCES runs ON DELETE CASCADE,
    -- Of the task in its run, from 0.
    position    BIGINT  NOT NULL,
    -- Of the list of a for-each, from 0.
    item        BIGINT,
    task_key    TEXT    NOT NULL,
    attempt     BIGINT  NOT NULL,
    -- 0: the original run; n: its n-th repair.
    round       BIGINT  NOT NULL,
    life_cycle  TEXT    NOT NULL,
    result      TEXT,
    code        TEXT,
    message     TEXT    NOT NULL,
    start_ms    BIGINT,
    running_ms  BIGINT,
    end_ms      BIGINT,
    -- Names the start of its work in the run.
    epoch       BIGINT,
    -- The engine's own state of the work; NULL: there is none now.
    work        TEXT,
    -- What is known of it besides: resolved values, its error.
    detail      TEXT    NOT NULL
);

CREATE INDEX task_runs_by_run ON task_runs (run_id, position, item NULLS FIRST, attempt);

-- The engine's own state of the tasks of a run.
CREATE TABLE run_tasks (
    run_id   BIGINT  NOT NULL REFERENCES runs ON DELETE CASCADE,
    position BIGINT  NOT NULL,
    core     TEXT    NOT NULL,
    PRIMARY KEY (run_id, position)
);

-- Every change of state. Rows are added, never changed.
CREATE TABLE transitions (
    seq         BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      BIGINT  NOT NULL,
    -- NULL: of the run itself.
    task_run_id BIGINT,
    life_cycle  TEXT    NOT NULL,
    at_ms       BIGINT  NOT NULL
);

CREATE INDEX transitions_by_run ON transitions (run_id, seq);

-- The same token, the same run. Job 0: runs that were submitted without a job.
CREATE TABLE idempotency (
    job_id BIGINT  NOT NULL,
    token  TEXT    NOT NULL,
    run_id BIGINT  NOT NULL,
    PRIMARY KEY (job_id, token)
);

-- What is kept of a run besides its own rows goes with it.
CREATE INDEX idempotency_by_run ON idempotency (run_id);
CREATE FUNCTION forget_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM idempotency WHERE run_id = OLD.run_id;
    DELETE FROM transitions WHERE run_id = OLD.run_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER runs_are_forgotten AFTER DELETE ON runs FOR EACH ROW EXECUTE FUNCTION forget_run();

-- Up to which number ids have been given out.
CREATE TABLE ids (given BIGINT NOT NULL);
INSERT INTO ids VALUES (0);
