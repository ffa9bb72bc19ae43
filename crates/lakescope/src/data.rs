//! The data directory: where it is.

use anyhow::{Result, bail};
use std::path::PathBuf;

/// Where things are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct DataDir {
    /// Data directory [default: $XDG_DATA_HOME/lakescope or ~/.local/share/lakescope].
    #[arg(long, value_name = "FOLDER", env = "LAKESCOPE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

impl DataDir {
    /// The directory that is meant; it need not be there yet.
    ///
    /// # Errors
    /// When none is named and the user has no home.
    pub fn dir(&self) -> Result<PathBuf> {
        if let Some(dir) = &self.data_dir {
            return Ok(dir.clone());
        }
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_DATA_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".local/share")))
            .or_else(|| set("LOCALAPPDATA"));
        match base {
            Some(base) => Ok(base.join("lakescope")),
            None => bail!("no home folder is known; name a data directory with --data-dir"),
        }
    }
}
