-- How the triggers of jobs stand that wait for something to happen: what they have seen, when they
-- fired. A table of its own, as lists of jobs do not need it.
CREATE TABLE trigger_states (
    job_id INTEGER PRIMARY KEY,
    state  TEXT    NOT NULL
) STRICT;
