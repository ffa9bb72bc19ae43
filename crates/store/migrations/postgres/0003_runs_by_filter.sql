-- As in SQLite: runs of a job that are of a type which few of its runs have, and in each index whether
-- a run is over.
CREATE INDEX runs_by_job_and_type ON runs (job_id, run_type, start_ms, run_id, end_ms);

DROP INDEX runs_by_start;
DROP INDEX runs_by_job;
DROP INDEX runs_by_type;
CREATE INDEX runs_by_start ON runs (start_ms, run_id, end_ms);
CREATE INDEX runs_by_job ON runs (job_id, start_ms, run_id, end_ms);
CREATE INDEX runs_by_type ON runs (run_type, start_ms, run_id, end_ms);
