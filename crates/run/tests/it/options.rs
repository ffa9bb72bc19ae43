//! Engines of tests: their programs are shell scripts.

use run::engine::Options;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// With all that belongs to the engine in one folder.
pub fn options(folder: &Path) -> Options {
    Options {
        attempts: folder.join("attempts"),
        shim: env!("CARGO_BIN_EXE_run-shim").into(),
        slots: 32,
        python: "/bin/sh".to_owned(),
        environments: folder.join("environments"),
        sources: folder.join("sources"),
        output_stays: Duration::from_secs(3_600),
        spark_home: None,
        spark_master: None,
        event_logs: None,
        grace: Duration::from_secs(1),
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        give_up_after: Duration::from_secs(60),
        watching: None,
    }
}
