//! Folders and buckets that are looked at again and again.

use super::{Content, Found, Place, local, one_of_many, scheme};
use anyhow::{Context, Result, bail};
use read::source::{Entry, LogFiles, LogKind, LooksLike, group, probe};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use store::Mark;

/// Bytes by which a log is told from another of the same name: they hold times and ports.
const HEAD_BYTES: u64 = 4 << 10;

/// Bytes and last change, epoch ms, of a file.
type Stat = (Option<u64>, i64);

/// A place where logs appear, grow and go.
pub struct Source {
    address: String,
    place: Watched,
}

enum Watched {
    Folder(local::Folder),
    #[cfg(feature = "cloud")]
    Bucket(super::cloud::Bucket, super::cloud::Address),
}

/// A log as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path or address of its first file.
    pub path: String,
    /// Its files.
    pub files: LogFiles,
    /// Tells whether it has changed.
    pub mark: Mark,
    /// Sizes of the files.
    sizes: Vec<Option<u64>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Source").field(&self.address).finish()
    }
}

impl Source {
    /// A folder, or a bucket's address.
    ///
    /// # Errors
    /// When the folder is not there, or the address is none.
    pub fn open(address: &str) -> Result<Self> {
        let place = match scheme(address) {
            None => folder(PathBuf::from(address))?,
            Some("file") => folder(local::path_of_url(address)?)?,
            Some(scheme) => Self::bucket(scheme, address)?,
        };
        Ok(Self { address: address.to_owned(), place })
    }

    #[cfg(feature = "cloud")]
    fn bucket(_scheme: &str, address: &str) -> Result<Watched> {
        let (bucket, address) = super::cloud::folder(address)?;
        Ok(Watched::Bucket(bucket, address))
    }

    #[cfg(not(feature = "cloud"))]
    fn bucket(scheme: &str, address: &str) -> Result<Watched> {
        bail!("cannot read {address}: this build reads no {scheme}:// addresses; build with `--features cloud`")
    }

    /// What to call it in messages.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    fn place(&self) -> &dyn Place {
        match &self.place {
            Watched::Folder(folder) => folder,
            #[cfg(feature = "cloud")]
            Watched::Bucket(bucket, _) => bucket,
        }
    }

    /// All logs that are there now.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn look(&self) -> Result<Vec<Seen>> {
        let stats = self.stats()?;
        let entries: Vec<Entry> = stats.iter().map(|(entry, _)| entry.clone()).collect();
        let by_path: HashMap<&str, Stat> =
            stats.iter().map(|(entry, modified)| (entry.path.as_str(), (entry.size, *modified))).collect();
        let seen = |files: LogFiles| {
            let of = |path: &String| by_path.get(path.as_str()).copied().unwrap_or_default();
            let stats: Vec<Stat> = files.parts.iter().map(of).collect();
            Seen {
                path: self.place().name(&files.parts[0]),
                mark: mark(&stats),
                sizes: stats.into_iter().map(|stat| stat.0).collect(),
                files,
            }
        };
        Ok(group(&entries).logs.into_iter().map(seen).collect())
    }

    /// Files or objects with the time of their last change, epoch ms, by path.
    fn stats(&self) -> Result<Vec<(Entry, i64)>> {
        match &self.place {
            Watched::Folder(folder) => {
                let with_time = |entry: Entry| {
                    let modified = std::fs::metadata(folder.0.join(&entry.path)).and_then(|about| about.modified());
                    (entry, modified_ms(modified))
                };
                Ok(local::listing(&folder.0)?.into_iter().map(with_time).collect())
            }
            #[cfg(feature = "cloud")]
            Watched::Bucket(bucket, address) => bucket.stats(address),
        }
    }

    /// The first bytes of a log, which stay as long as it only grows. Objects in a bucket change as
    /// a whole: of them there is nothing to know.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn head(&self, seen: &Seen) -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        if let Some(folder) = self.folder() {
            File::open(folder.0.join(&seen.files.parts[0]))?.take(HEAD_BYTES).read_to_end(&mut head)?;
        }
        Ok(head)
    }

    /// Whether the files of a log did anything but grow since they were seen.
    #[must_use]
    pub fn is_rewritten(&self, seen: &Seen, head: &[u8]) -> bool {
        if self.folder().is_none() {
            return false;
        }
        let Some(now) = self.stats_of(seen) else { return true };
        let shrank = now.iter().zip(&seen.sizes).any(|(now, then)| now.0 < *then);
        let changed_in_place = mark(&now) != seen.mark && mark(&now).bytes == seen.mark.bytes;
        shrank || changed_in_place || !self.head(seen).is_ok_and(|now| now.starts_with(head))
    }

    /// Whether the files of a log are as they were seen.
    #[must_use]
    pub fn is_as_seen(&self, seen: &Seen) -> bool {
        self.folder().is_none() || self.stats_of(seen).is_some_and(|now| mark(&now) == seen.mark)
    }

    fn folder(&self) -> Option<&local::Folder> {
        match &self.place {
            Watched::Folder(folder) => Some(folder),
            #[cfg(feature = "cloud")]
            Watched::Bucket(..) => None,
        }
    }

    /// The files of a log now; `None` when one is gone.
    fn stats_of(&self, seen: &Seen) -> Option<Vec<Stat>> {
        let folder = self.folder()?;
        let stat = |path: &String| std::fs::metadata(folder.0.join(path)).ok().filter(Metadata::is_file);
        seen.files
            .parts
            .iter()
            .map(|path| stat(path).map(|about| (Some(about.len()), modified_ms(about.modified()))))
            .collect()
    }

    /// The applications of a log: one, or those of an archive. `None` for what stands beside logs
    /// and is none, neither by its name nor by its content.
    ///
    /// # Errors
    /// When it should be a log and is none, or cannot be opened.
    pub fn find(&self, seen: &Seen) -> Result<Option<Vec<Found>>> {
        let entry = |(path, size): (&String, &Option<u64>)| Entry { path: path.clone(), size: *size };
        let mut listing: Vec<Entry> = seen.files.parts.iter().zip(&seen.sizes).map(entry).collect();
        listing.sort_by(|a, b| a.path.cmp(&b.path));
        if seen.files.kind == LogKind::Single && !is_named_like_a_log(&seen.files.parts[0]) {
            let mut part = self.place().part(&seen.files.parts[0], seen.sizes.first().copied().flatten());
            if !matches!(probe(&mut part)?.looks_like, LooksLike::EventLog | LooksLike::Zip | LooksLike::Damaged) {
                return Ok(None);
            }
        }
        let mut all = super::Findings::default();
        one_of_many(self.place(), &listing, seen.files.clone(), &mut all)?;
        all.found.retain(|found| matches!(found.content, Content::Log(_)));
        match (all.found.is_empty(), all.skipped.first()) {
            (false, _) => Ok(Some(all.found)),
            (true, Some((name, why))) => bail!("there is no event log in it; {name} {why}"),
            (true, None) => bail!("there is no event log in it"),
        }
    }
}

fn mark(stats: &[Stat]) -> Mark {
    Mark {
        bytes: stats.iter().filter_map(|stat| stat.0).sum(),
        modified_ms: stats.iter().map(|stat| stat.1).max().unwrap_or_default(),
        files: u32::try_from(stats.len()).unwrap_or(u32::MAX),
    }
}

fn modified_ms(time: std::io::Result<SystemTime>) -> i64 {
    let since = time.map(|time| time.duration_since(UNIX_EPOCH).unwrap_or_default());
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or_default())
}

fn folder(path: PathBuf) -> Result<Watched> {
    std::fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
    Ok(Watched::Folder(local::Folder(path)))
}

/// Names that Spark gives to logs: by its application ids, and by codec.
fn is_named_like_a_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let begins = ["app-", "application_", "local-", "spark-", "eventlog"].iter().any(|start| name.starts_with(start));
    let ends = [".inprogress", ".zstd", ".lz4", ".snappy", ".lzf"].iter().any(|end| name.ends_with(end));
    begins || ends
}

impl Seen {
    /// The same log in a state that it is never in.
    #[must_use]
    pub fn to_be_looked_at_again(&self) -> Self {
        Self { mark: Mark::default(), ..self.clone() }
    }

    /// Whether it is an archive, which may hold several applications.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        self.files.kind == LogKind::Zip
    }
}
