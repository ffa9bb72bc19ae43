//! What triggers of jobs wait for: files that arrive below a folder or a prefix, commits of Delta
//! tables.
//!
//! A look lists names and sizes; of a table it reads the commits that are new, as those that only
//! rewrite files (OPTIMIZE) or change metadata bring no data.

use super::local;
use anyhow::{Context, Result, bail};
use run::trigger::watch::{Files, Glance, MOST_FILES, NO_VERSION, Place};
use serde::Deserialize;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

#[cfg(feature = "cloud")]
use super::cloud::{Address, Bucket};
#[cfg(feature = "cloud")]
use read::source::Entry;
#[cfg(feature = "cloud")]
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

/// Folders in folders that are looked into.
const MAX_DEPTH: usize = 64;
/// New commits of a table that are read at a look; that more of them change data is taken for granted.
const MOST_COMMITS: i64 = 100;
/// Bytes of the longest commit that is read; that a longer one changes data is taken for granted.
const LONGEST_COMMIT: u64 = 16 << 20;
/// Digits of a version in the name of its commit.
const VERSION_DIGITS: usize = 20;
const LOG: &str = "_delta_log";
/// Buckets whose connections are kept.
#[cfg(feature = "cloud")]
const MOST_BUCKETS: usize = 256;

/// Looks at folders, buckets and tables.
#[derive(Default)]
pub struct Watcher {
    #[cfg(feature = "cloud")]
    buckets: Mutex<HashMap<String, Arc<(Bucket, Address)>>>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

#[cfg(feature = "cloud")]
impl Drop for Watcher {
    fn drop(&mut self) {
        // A client's runtime must not end on a thread of the server's.
        let buckets = std::mem::take(self.buckets.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !buckets.is_empty() {
            std::thread::spawn(move || drop(buckets));
        }
    }
}

impl run::engine::Watcher for Watcher {
    fn look(&self, place: &Place, since: Option<i64>) -> Glance {
        let looked = self.folder(place.address()).and_then(|folder| match place {
            Place::Files(_) => folder.files(place.address()),
            Place::Table(_) => folder.table(place.address(), since),
        });
        looked.unwrap_or_else(|error| Glance::Failed(format!("{error:#}")))
    }
}

/// Where files lie.
enum Folder {
    Local(PathBuf),
    #[cfg(feature = "cloud")]
    Bucket(Arc<(Bucket, Address)>),
}

impl Watcher {
    fn folder(&self, address: &str) -> Result<Folder> {
        match super::scheme(address) {
            None => Ok(Folder::Local(PathBuf::from(address))),
            Some("file") => Ok(Folder::Local(local::path_of_url(address)?)),
            Some(scheme) => self.bucket(scheme, address),
        }
    }

    #[cfg(feature = "cloud")]
    fn bucket(&self, _scheme: &str, address: &str) -> Result<Folder> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = buckets.get(address) {
            return Ok(Folder::Bucket(Arc::clone(known)));
        }
        if buckets.len() >= MOST_BUCKETS {
            buckets.clear();
        }
        let opened = Arc::new(super::cloud::folder(address)?);
        buckets.insert(address.to_owned(), Arc::clone(&opened));
        Ok(Folder::Bucket(opened))
    }

    #[cfg(not(feature = "cloud"))]
    fn bucket(&self, scheme: &str, address: &str) -> Result<Folder> {
        bail!("cannot look at {address}: this build reads no {scheme}:// addresses; build with `--features cloud`")
    }
}

/// Path below the folder, bytes, last change in epoch ms.
type Stat = (String, u64, i64);

impl Folder {
    fn files(&self, address: &str) -> Result<Glance> {
        let stats = match self {
            Self::Local(folder) => {
                let mut stats = Vec::new();
                match walk(folder, "", 0, &mut stats) {
                    Ok(()) => stats,
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        return Ok(Glance::Missing(format!("cannot look at {address}: there is no such folder")));
                    }
                    Err(error) => return Err(error).with_context(|| format!("cannot look at {address}")),
                }
            }
            #[cfg(feature = "cloud")]
            Self::Bucket(opened) => objects(opened)?,
        };
        if stats.len() > MOST_FILES {
            bail!(
                "cannot look at {address}: it has more than {MOST_FILES} files; name a folder further down, or move \
                 away what has been read"
            );
        }
        Ok(Glance::Files(Files::of(stats.iter().map(|(path, bytes, ms)| (path.as_str(), *bytes, *ms)))))
    }

    /// `since` is the version that is known.
    fn table(&self, address: &str, since: Option<i64>) -> Result<Glance> {
        let known = since.filter(|version| *version > NO_VERSION);
        let newest = self.newest(address, known)?;
        let Some(version) = newest.or(known) else {
            return Ok(Glance::Missing(format!("cannot look at {address}: there is no Delta table")));
        };
        let has_changed = match since {
            None => false,
            Some(since) => self.has_changed(address, since, version)?,
        };
        Ok(Glance::Table { since, version, has_changed })
    }

    /// Whether the commits from one version to another changed data.
    fn has_changed(&self, address: &str, since: i64, version: i64) -> Result<bool> {
        // A table with fewer commits than before is another one.
        if version < since || version - since > MOST_COMMITS {
            return Ok(true);
        }
        for version in since + 1..=version {
            let changes = self.commit(version).and_then(|commit| commit.map_or(Ok(true), changes_data));
            if changes.with_context(|| format!("cannot read commit {version} of {address}"))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Version of the newest commit; of a bucket, which is listed from there on, at least the one that
    /// is known.
    #[cfg_attr(not(feature = "cloud"), allow(unused_variables))] // A folder is listed whole.
    fn newest(&self, address: &str, known: Option<i64>) -> Result<Option<i64>> {
        match self {
            Self::Local(folder) => match std::fs::read_dir(folder.join(LOG)) {
                Ok(names) => {
                    let names = names.map(|entry| Ok(version_of(&entry?.file_name().to_string_lossy())));
                    let newest = names.collect::<io::Result<Vec<_>>>().map(|all| all.into_iter().flatten().max());
                    newest.with_context(|| format!("cannot look at {address}"))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error).with_context(|| format!("cannot look at {address}")),
            },
            #[cfg(feature = "cloud")]
            Self::Bucket(opened) => {
                let (bucket, address) = &**opened;
                let known = known.map_or_else(|| checkpoint(bucket, address), |known| Ok(Some(known)))?;
                let after = commit_name(known.unwrap_or(NO_VERSION).max(0));
                let names = bucket.names_after(address, LOG, known.map(|_| after.as_str()))?;
                Ok(names.iter().filter_map(|name| version_of(name)).max().or(known))
            }
        }
    }

    /// A commit to be read; `None`: it is not there any more, or longer than what is read.
    fn commit(&self, version: i64) -> Result<Option<Box<dyn Read>>> {
        let name = commit_name(version);
        match self {
            Self::Local(folder) => match std::fs::File::open(folder.join(LOG).join(name)) {
                Ok(file) if file.metadata()?.len() > LONGEST_COMMIT => Ok(None),
                Ok(file) => Ok(Some(Box::new(file))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.into()),
            },
            #[cfg(feature = "cloud")]
            Self::Bucket(opened) => {
                let (bucket, address) = &**opened;
                let bytes = bucket.bytes(address, &format!("{LOG}/{name}"), LONGEST_COMMIT)?;
                Ok(bytes.map(|bytes| Box::new(io::Cursor::new(bytes)) as Box<dyn Read>))
            }
        }
    }
}

/// Lists files, one more than are watched at most. Names that begin with a dot or an underscore are
/// those of files that no reader takes for data; links to folders may lead in a circle.
fn walk(folder: &Path, below: &str, depth: usize, stats: &mut Vec<Stat>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_hidden(&name) || stats.len() > MOST_FILES {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let looked = match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => walk(&entry.path(), &path, depth + 1, stats),
            Ok(_) => std::fs::metadata(entry.path()).map(|about| {
                if about.is_file() {
                    let modified = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                    stats.push((path, about.len(), modified.map_or(0, |at| at.as_millis() as i64)));
                }
            }),
            Err(error) => Err(error),
        };
        match looked {
            // It went while we looked.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            looked => looked?,
        }
    }
    Ok(())
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

#[cfg(feature = "cloud")]
fn objects((bucket, address): &(Bucket, Address)) -> Result<Vec<Stat>> {
    let (stats, is_whole) = bucket.stats_up_to(address, MOST_FILES)?;
    let mut files: Vec<Entry> = stats.iter().map(|(entry, _)| entry.clone()).collect();
    super::cloud::drop_folder_marks(&mut files);
    let files: HashSet<String> = files.into_iter().map(|entry| entry.path).collect();
    let mut stats: Vec<Stat> = stats
        .into_iter()
        .filter(|(entry, _)| files.contains(&entry.path) && !entry.path.split('/').any(is_hidden))
        .map(|(entry, modified_ms)| (entry.path, entry.size.unwrap_or_default(), modified_ms))
        .collect();
    if !is_whole {
        // What is left out counts, or nobody is told.
        stats.resize(MOST_FILES + 1, Stat::default());
    }
    Ok(stats)
}

/// The version that a table's last checkpoint tells, so that the listing need not begin at the first.
#[cfg(feature = "cloud")]
fn checkpoint(bucket: &Bucket, address: &Address) -> Result<Option<i64>> {
    #[derive(Deserialize)]
    struct Last {
        version: i64,
    }
    let bytes = bucket.bytes(address, &format!("{LOG}/_last_checkpoint"), LONGEST_COMMIT)?;
    // It is a hint: without it all is listed.
    Ok(bytes.and_then(|bytes| serde_json::from_slice::<Last>(&bytes).ok()).map(|last| last.version))
}

fn commit_name(version: i64) -> String {
    format!("{version:0VERSION_DIGITS$}.json")
}

/// The version of a commit by the name of its file; `None`: it is another file of the log.
fn version_of(name: &str) -> Option<i64> {
    let digits = name.strip_suffix(".json").filter(|digits| digits.len() == VERSION_DIGITS)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Whether a commit adds or removes rows: what it says of each file (`dataChange`).
fn changes_data(commit: impl Read) -> Result<bool> {
    #[derive(Deserialize)]
    struct Action {
        add: Option<File>,
        remove: Option<File>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct File {
        data_change: bool,
    }
    for action in serde_json::Deserializer::from_reader(BufReader::new(commit)).into_iter::<Action>() {
        let Action { add, remove } = action?;
        if add.into_iter().chain(remove).any(|file| file.data_change) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::engine::Watcher as _;
    use std::fs;

    fn look(at: &Path, place: fn(String) -> Place, since: Option<i64>) -> Glance {
        Watcher::default().look(&place(at.display().to_string()), since)
    }

    #[test]
    fn files_are_those_that_a_reader_would_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("day=1/hour=2")).unwrap();
        fs::create_dir_all(path("_temporary/0")).unwrap();
        for name in ["a.csv", "day=1/hour=2/b.csv", "_SUCCESS", ".a.csv.crc", "_temporary/0/c.csv"] {
            fs::write(path(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), path("circle")).unwrap();
        let mut stats = Vec::new();
        walk(folder.path(), "", 0, &mut stats).unwrap();
        let mut names: Vec<&str> = stats.iter().map(|(path, ..)| path.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.csv", "day=1/hour=2/b.csv"]);
        let url = Place::Files(format!("file://{}", folder.path().display()));
        assert_eq!(Watcher::default().look(&url, None), look(folder.path(), Place::Files, None));
        assert!(matches!(look(&path("none"), Place::Files, None), Glance::Missing(_)));
    }

    #[test]
    fn a_folder_with_too_many_files_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=MOST_FILES {
            fs::write(folder.path().join(n.to_string()), "").unwrap();
        }
        let Glance::Failed(why) = look(folder.path(), Place::Files, None) else { panic!() };
        assert!(why.contains("more than 10000 files"), "{why}");
        fs::remove_file(folder.path().join("0")).unwrap();
        assert!(matches!(look(folder.path(), Place::Files, None), Glance::Files(_)));
    }

    #[test]
    fn commits_count_that_change_data() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(look(folder.path(), Place::Table, None), Glance::Missing(_)));
        fs::create_dir(folder.path().join(LOG)).unwrap();
        let commit = |version: i64, line: &str| {
            let text = format!("{{\"commitInfo\":{{\"timestamp\":1}}}}\n{line}\n");
            fs::write(folder.path().join(LOG).join(commit_name(version)), text).unwrap();
        };
        let glance = |since| look(folder.path(), Place::Table, since);
        assert!(matches!(glance(Some(NO_VERSION)), Glance::Missing(_)));
        let table = |since: i64, version, has_changed| Glance::Table { since: Some(since), version, has_changed };
        commit(0, r#"{"metaData":{"id":"x"}}"#);
        assert_eq!(glance(None), Glance::Table { since: None, version: 0, has_changed: false });
        assert_eq!(glance(Some(NO_VERSION)), table(NO_VERSION, 0, false));
        commit(1, r#"{"add":{"path":"a","stats":"{}","dataChange":true}}"#);
        commit(2, r#"{"add":{"path":"b","dataChange":false}}"#);
        for name in ["00000000000000000009.checkpoint.parquet", "_last_checkpoint", "00000000000000000003.crc"] {
            fs::write(folder.path().join(LOG).join(name), "{}").unwrap();
        }
        assert_eq!((glance(Some(0)), glance(Some(1))), (table(0, 2, true), table(1, 2, false)));
        assert_eq!((glance(Some(2)), glance(Some(7))), (table(2, 2, false), table(7, 2, true)));
        commit(3, r#"{"remove":{"path":"b","dataChange":true}}"#);
        assert_eq!(glance(Some(2)), table(2, 3, true));
        commit(4, r#"{"add":{"path":"#);
        let Glance::Failed(why) = glance(Some(3)) else { panic!() };
        assert!(why.contains("cannot read commit 4 of"), "{why}");
        commit(500, "");
        assert_eq!(glance(Some(4)), table(4, 500, true), "what has been cleaned away may have changed data");
    }
}
