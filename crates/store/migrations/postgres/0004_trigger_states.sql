-- As in SQLite: how the triggers of jobs stand that wait for something to happen.
CREATE TABLE trigger_states (
    job_id BIGINT PRIMARY KEY,
    state  TEXT   NOT NULL
);
