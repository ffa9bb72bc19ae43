-- Who leads: one row.
CREATE TABLE lease (
    -- Grows with each leader.
    epoch      BIGINT      NOT NULL,
    -- Transactions of this leader so far.
    written    BIGINT      NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    -- Where its programs run; NULL: nobody has led so far.
    site       TEXT,
    -- The same for people.
    site_name  TEXT
);
INSERT INTO lease VALUES (0, 0, '-infinity', NULL, NULL);

-- What other replicas ask of the leader.
CREATE TABLE commands (
    id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    command     TEXT        NOT NULL,
    asked_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- Epoch of the leader that works on it.
    taken_epoch BIGINT,
    answer      TEXT
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lakescope', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER commands_are_heard AFTER INSERT OR UPDATE OF answer ON commands EXECUTE FUNCTION ring();
