//! What goes in time: folders that tasks share and no task uses, and what tasks wrote.

use super::Options;
use super::executor::blocking;
use crate::local;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// How long an environment stays that no task uses.
const ENVIRONMENT_STAYS: Duration = DAY.saturating_mul(30);
/// How long files of a repository stay for a repair of their run.
const SOURCES_STAY: Duration = DAY.saturating_mul(7);

/// Tidies now and once a day, beside all else, until the guard is dropped.
pub(super) fn tidy(options: &Options) -> DropGuard {
    let token = CancellationToken::new();
    let (environments, sources) = (options.environments.clone(), options.sources.clone());
    let (attempts, output_stays) = (options.attempts.clone(), options.output_stays);
    tokio::spawn(token.clone().run_until_cancelled_owned(async move {
        loop {
            removed("Python environments", environments.clone(), ENVIRONMENT_STAYS, local::remove_unused).await;
            removed("files of repositories", sources.clone(), SOURCES_STAY, local::remove_unused).await;
            removed("output of tasks", attempts.clone(), output_stays, local::remove_old).await;
            tokio::time::sleep(DAY).await;
        }
    }));
    token.drop_guard()
}

async fn removed(
    what: &'static str,
    folder: PathBuf,
    stays: Duration,
    remove: fn(&std::path::Path, Duration) -> io::Result<usize>,
) {
    let at = folder.display().to_string();
    match blocking(move || remove(&folder, stays)).await {
        Ok(0) => {}
        Ok(folders) => tracing::info!(folders, folder = %at, "old {what} are removed"),
        Err(error) => tracing::warn!(%error, folder = %at, "old {what} cannot be removed"),
    }
}
