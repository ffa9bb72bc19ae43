//! Watches folders and buckets of event logs: what is new or has grown is read, what vanished is
//! forgotten.
//!
//! Of every log the row that lists need stays in memory; whole applications only of the logs that
//! were asked for last. With a data directory both outlive the process, so that no log is read
//! twice.

mod kept;
mod open;
mod uploads;

use crate::inputs::watch::{Seen, Source};
use crate::inputs::{Content, Found};
use crate::render::{self, Row};
use crate::traces;
use diagnose::Config;
pub use kept::reader;

use kept::Kept;
use open::Open;
use serve::{Added, History, Listed, LogFile, Opened, Page, SPANS, Unreadable};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use store::{Mark, Store};
use tracing::field::Empty;
use tracing::{Span, info_span};

/// Logs that are read at once, on a machine with that many processors.
const MOST_READERS: usize = 8;
/// Bytes from which on a log is read by itself.
const LARGE_LOG: u64 = 8 << 20;

/// What is watched, and how.
#[derive(Debug)]
pub struct Settings {
    /// Folders and buckets.
    pub sources: Vec<Source>,
    /// Where logs that people drop are kept; without it none are taken.
    pub uploads: Option<PathBuf>,
    /// Most bytes of a dropped log.
    pub max_upload_bytes: u64,
    /// Bounds of reading.
    pub reading: read::Options,
    /// Thresholds and prices.
    pub config: Config,
    /// Most memory that whole applications take, bytes, about.
    pub memory_bytes: usize,
    /// What outlives the process.
    pub store: Option<Arc<Store>>,
}

/// The logs of all sources.
#[derive(Debug)]
pub struct Ingest {
    sources: Vec<Source>,
    uploads: Option<(PathBuf, Source)>,
    max_upload_bytes: u64,
    reading: read::Options,
    config: Arc<Config>,
    kept: Option<Kept>,
    /// By the path of the first file; of an archive with the name inside it.
    logs: RwLock<BTreeMap<String, Log>>,
    /// Sources that cannot be listed now, and why.
    faults: Mutex<BTreeMap<String, String>>,
    open: Open,
    /// Held while a log is read, so that it is read once however many ask for it.
    reading_now: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    /// Held while a large log is read.
    large: Mutex<()>,
    ready: AtomicBool,
    revision: AtomicU64,
}

/// One log as it was when it was looked at.
#[derive(Clone, Debug, PartialEq)]
struct Log {
    /// Position of its source; `None` of a dropped one.
    source: Option<usize>,
    seen: Seen,
    /// What lists show, or why it cannot be read.
    listed: Result<Listed, String>,
}

impl Ingest {
    /// Watches the sources.
    ///
    /// # Errors
    /// When the folder for dropped logs cannot be made.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let uploads = match settings.uploads {
            Some(folder) => {
                std::fs::create_dir_all(&folder)?;
                uploads::sweep(&folder);
                let source = Source::open(&folder.display().to_string())?;
                Some((folder, source))
            }
            None => None,
        };
        let config = Arc::new(settings.config);
        Ok(Self {
            sources: settings.sources,
            uploads,
            max_upload_bytes: settings.max_upload_bytes,
            reading: settings.reading,
            kept: settings.store.map(Kept::new),
            config,
            logs: RwLock::default(),
            faults: Mutex::default(),
            open: Open::new(settings.memory_bytes),
            reading_now: Mutex::default(),
            large: Mutex::default(),
            ready: AtomicBool::new(false),
            revision: AtomicU64::new(0),
        })
    }

    fn source(&self, at: Option<usize>) -> Option<&Source> {
        match at {
            Some(at) => self.sources.get(at),
            None => self.uploads.as_ref().map(|(_, source)| source),
        }
    }

    /// Looks at all sources once: reads what is new or has changed, forgets what is gone. A source
    /// that does not answer keeps what is known of it.
    pub fn scan(&self) {
        let all = (0..self.sources.len()).map(Some).chain(self.uploads.is_some().then_some(None));
        for at in all {
            let Some(source) = self.source(at) else { continue };
            match source.look() {
                Ok(seen) => {
                    self.fault(source.address(), None);
                    self.take(at, seen);
                }
                Err(error) => self.fault(source.address(), Some(format!("{error:#}"))),
            }
        }
        let all_answered = self.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if let Some(kept) = self.kept.as_ref().filter(|_| all_answered) {
            let all = self.sources.iter().chain(self.uploads.iter().map(|(_, source)| source));
            let addresses: Vec<&str> = all.map(Source::address).collect();
            kept.forget_rest(&addresses);
        }
        self.ready.store(true, Ordering::Release);
    }

    /// Loads what is known from before.
    pub fn load(&self) {
        if let Some(kept) = &self.kept {
            kept.load();
        }
    }

    fn fault(&self, address: &str, why: Option<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.get(address) != why.as_ref() {
            match why {
                Some(why) => drop(faults.insert(address.to_owned(), why)),
                None => drop(faults.remove(address)),
            }
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes in what a source holds now.
    fn take(&self, at: Option<usize>, seen: Vec<Seen>) {
        let there: HashMap<&str, Mark> = seen.iter().map(|seen| (seen.path.as_str(), seen.mark)).collect();
        let gone = |log: &Log| log.source == at && !there.contains_key(log.seen.path.as_str());
        self.forget(gone);
        let known: HashMap<String, Mark> = {
            let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
            logs.values().filter(|log| log.source == at).map(|log| (log.seen.path.clone(), log.seen.mark)).collect()
        };
        let mut changed: Vec<Seen> =
            seen.into_iter().filter(|seen| known.get(&seen.path) != Some(&seen.mark)).collect();
        // The newest logs are the ones that people wait for.
        changed.sort_by_key(|seen| std::cmp::Reverse(seen.mark.modified_ms));
        self.look_at_all(at, changed);
    }

    /// Looks at logs side by side, in their order.
    fn look_at_all(&self, at: Option<usize>, logs: Vec<Seen>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS).min(logs.len());
        let queue = Mutex::new(logs.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(seen) = next() {
                self.look_at(at, &seen);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }

    fn forget(&self, is_gone: impl Fn(&Log) -> bool) {
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<String> = logs.iter().filter(|(_, log)| is_gone(log)).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            logs.remove(key);
            self.open.close(key);
            if let Some(kept) = &self.kept {
                kept.forget(key);
            }
        }
        if !keys.is_empty() {
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads a log, unless what was kept of it is as new as the log.
    fn look_at(&self, at: Option<usize>, seen: &Seen) {
        match self.kept.as_ref().and_then(|kept| kept.known(seen)) {
            Some(known) => self.enter(at, seen, known),
            None => self.read_now(at, seen),
        }
    }

    /// Reads a log. One that cannot be opened, or that somebody rewrites meanwhile (what was read
    /// may then be of two versions), is looked at again the next time.
    fn read_now(&self, at: Option<usize>, seen: &Seen) {
        let Some(source) = self.source(at) else { return };
        let again = seen.to_be_looked_at_again();
        let cannot = |why: &str| vec![(seen.path.clone(), Err(format!("cannot read {}: {why}", seen.path)))];
        let version = match Version::of(source, seen) {
            Ok(version) => version,
            Err(error) => return self.enter(at, &again, cannot(&error.to_string())),
        };
        match self.read_safely(&version) {
            Some(logs) => self.enter(at, seen, logs),
            // What is known of it stays.
            None if self.lists(at, &seen.path) => {}
            None => self.enter(at, &again, cannot("it was rewritten meanwhile; it is read again")),
        }
    }

    fn lists(&self, at: Option<usize>, path: &str) -> bool {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.values().any(|log| log.source == at && log.seen.path == path && log.listed.is_ok())
    }

    /// Puts a log in place of what was known of it: an archive may hold other applications than before.
    fn enter(&self, at: Option<usize>, seen: &Seen, logs: Vec<(String, Result<Listed, String>)>) {
        let log = |listed| Log { source: at, seen: seen.clone(), listed };
        let now: BTreeMap<String, Log> = logs.into_iter().map(|(key, listed)| (key, log(listed))).collect();
        let mut all = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        let of_path = |_: &String, log: &mut Log| log.source == at && log.seen.path == seen.path;
        let before: BTreeMap<String, Log> = all.extract_if(.., of_path).collect();
        if before != now {
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
        all.extend(now);
    }

    /// As `read_all`. A large log has the machine for itself: its reading takes several threads and
    /// the memory of many small ones. A fault of ours costs one log, not those that come after it.
    fn read_safely(&self, version: &Version<'_>) -> Option<Vec<(String, Result<Listed, String>)>> {
        let seen = version.seen;
        let _alone = (seen.mark.bytes > LARGE_LOG).then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.read_all(version)));
        read.unwrap_or_else(|_| {
            let why = format!("reading {} failed: that is a fault of lakescope, please report it", seen.path);
            Some(vec![(seen.path.clone(), Err(why))])
        })
    }

    /// Rows of the applications of a log by key, which are kept; `None` when it is rewritten.
    fn read_all(&self, version: &Version<'_>) -> Option<Vec<(String, Result<Listed, String>)>> {
        let seen = version.seen;
        let found = match version.source.find(seen) {
            Ok(found) => found,
            Err(error) => {
                let why = format!("cannot read {}: {error:#}", seen.path);
                if let Some(kept) = &self.kept {
                    kept.put(&seen.path, seen, &Err(why.clone()), None);
                }
                return Some(vec![(seen.path.clone(), Err(why))]);
            }
        };
        // What no name and no content calls a log is none of ours.
        found.into_iter().flatten().map(|one| self.read_one(version, one)).collect()
    }

    fn read_one(&self, version: &Version<'_>, found: Found) -> Option<(String, Result<Listed, String>)> {
        let seen = version.seen;
        let key = key(seen, &found);
        let opened = self.parse(version, found)?;
        let listed = opened.as_ref().map(|opened| Listed::of(opened, seen.mark.modified_ms)).map_err(Clone::clone);
        if let Some(kept) = &self.kept {
            kept.put(&key, seen, &listed, opened.as_ref().ok());
        }
        if let Ok(opened) = opened {
            self.open.put(key.clone(), seen.mark, opened);
        }
        Some((key, listed))
    }

    /// Reads an application; `None` when its log is rewritten meanwhile.
    fn parse(&self, version: &Version<'_>, found: Found) -> Option<Result<Arc<Opened>, String>> {
        let Content::Log(parts) = found.content else { return Some(Err(format!("{} is no event log", found.name))) };
        let first = parts.first().map(|part| part.name.clone()).unwrap_or_default();
        let app = traces::inside(&reading(&first), || read::event_log(parts, &self.reading));
        let has_end = app.as_ref().is_ok_and(|app| app.ended_ms.is_some());
        if !version.holds(has_end) {
            return None;
        }
        let mut app = match app {
            Ok(app) if app.id.is_empty() => {
                return Some(Err(format!("cannot read {first}: it does not say (yet) which application it is of")));
            }
            Ok(app) => app,
            Err(error) => return Some(Err(format!("cannot read {first}: {error}"))),
        };
        app.log.in_progress |= found.in_progress;
        for note in &found.notes {
            app.log.warnings.push(model::Warning { code: "LOG_PARTIAL".to_owned(), text: note.to_string() });
        }
        Some(Ok(Arc::new(Opened::new(Arc::new(app), Arc::clone(&self.config)))))
    }

    fn find(&self, id: &str, attempt: Option<&str>) -> Option<(String, Log)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |log: &Log| {
            let listed = log.listed.as_ref().ok();
            listed.is_some_and(|listed| listed.id == id && listed.attempt.as_deref() == attempt)
        };
        let newest = logs.iter().filter(|(_, log)| is_meant(log)).max_by_key(|(_, log)| log.seen.mark.modified_ms);
        newest.map(|(key, log)| (key.clone(), log.clone()))
    }

    /// The application of a log that was let go: from what was kept of it, else from the log.
    fn reopened(&self, key: &str, log: &Log) -> Result<Arc<Opened>, String> {
        let lock = {
            let mut reading = self.reading_now.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(reading.entry(key.to_owned()).or_default())
        };
        let _alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match self.open.get(key, log.seen.mark) {
            Some(opened) => Ok(opened),
            None => self.loaded(key, log),
        };
        self.reading_now.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        opened
    }

    fn loaded(&self, key: &str, log: &Log) -> Result<Arc<Opened>, String> {
        let opened = match self.kept.as_ref().and_then(|kept| kept.opened(key, &log.seen, &self.config)) {
            Some(opened) => Arc::new(opened),
            None => {
                let source = self.source(log.source).ok_or("its source is gone")?;
                let version = Version::of(source, &log.seen).map_err(|error| format!("cannot read {key}: {error}"))?;
                let parsed = self.parse(&version, self.found(key, log)?);
                parsed.unwrap_or_else(|| Err(format!("cannot read {key}: it was rewritten meanwhile")))?
            }
        };
        self.open.put(key.to_owned(), log.seen.mark, Arc::clone(&opened));
        Ok(opened)
    }

    fn found(&self, key: &str, log: &Log) -> Result<Found, String> {
        let source = self.source(log.source).ok_or("its source is gone")?;
        let found = source.find(&log.seen).map_err(|error| format!("cannot read {key}: {error:#}"))?;
        let one = found.into_iter().flatten().find(|found| self::key(&log.seen, found) == key);
        one.ok_or_else(|| format!("cannot read {key}: the archive no longer holds it"))
    }

    fn is_as_seen(&self, log: &Log) -> bool {
        self.source(log.source).is_some_and(|source| source.is_as_seen(&log.seen))
    }

    /// Whether a log is still that of its application, as far as that can be told without reading
    /// it: it has not changed, or only goes on as expected.
    fn is_still_of(&self, log: &Log) -> bool {
        log.listed.as_ref().is_ok_and(|listed| listed.ended_ms.is_none()) || self.is_as_seen(log)
    }

    fn first_page(&self) -> String {
        let unreadable: Vec<String> = self.unreadable().into_iter().map(|one| one.reason).collect();
        let rows = self.list().iter().map(row).collect();
        render::applications_html(rows, &unreadable, self.is_ready())
    }

    /// Writes a dropped log into the folder for them; its name is its own as far as that is safe.
    fn keep_upload(&self, folder: &std::path::Path, name: &str, content: &mut dyn Read) -> Result<PathBuf, Added> {
        let failed =
            |error: std::io::Error| Added::Failed(format!("cannot keep {name} in {}: {error}", folder.display()));
        let mut part = tempfile::Builder::new().prefix(uploads::PART).tempfile_in(folder).map_err(failed)?;
        let bytes = uploads::receive(name, &mut content.take(self.max_upload_bytes + 1), &mut part, failed)?;
        match bytes {
            0 => return Err(Added::Refused(format!("{name} is empty"))),
            n if n > self.max_upload_bytes => {
                let most = model::Bytes(self.max_upload_bytes);
                return Err(Added::Refused(format!("{name} is larger than {most} (--max-upload)")));
            }
            _ => {}
        }
        for n in 0..1_000 {
            let path = folder.join(safe_name(name, n));
            match part.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(taken) if taken.error.kind() == std::io::ErrorKind::AlreadyExists => part = taken.file,
                Err(other) => return Err(failed(other.error)),
            }
        }
        Err(Added::Failed(format!("cannot keep {name}: too many logs have this name")))
    }
}

/// Looks at the sources again and again.
pub async fn watch(ingest: Arc<Ingest>, interval: Duration) {
    let loading = Arc::clone(&ingest);
    // A scan that panics is tried again: the server goes on with what it has.
    let _ = tokio::task::spawn_blocking(move || loading.load()).await;
    loop {
        let scanned = Arc::clone(&ingest);
        let _ = tokio::task::spawn_blocking(move || scanned.scan()).await;
        tokio::time::sleep(interval).await;
    }
}

/// A log while it is read: what tells afterwards whether all that was read is of one version.
struct Version<'a> {
    source: &'a Source,
    seen: &'a Seen,
    head: Vec<u8>,
}

impl<'a> Version<'a> {
    fn of(source: &'a Source, seen: &'a Seen) -> std::io::Result<Self> {
        Ok(Self { source, seen, head: source.head(seen)? })
    }

    /// Whether nobody has rewritten the log meanwhile; one that has an end does not grow either.
    fn holds(&self, has_end: bool) -> bool {
        match has_end {
            true => self.source.is_as_seen(self.seen),
            false => !self.source.is_rewritten(self.seen, &self.head),
        }
    }
}

/// The time that opening an application takes, from memory, from what was kept or from its log.
fn opening(id: &str, attempt: Option<&str>) -> Span {
    info_span!(
        target: SPANS,
        "open application",
        lakescope.application = id,
        lakescope.attempt = attempt,
        otel.status_code = Empty,
    )
}

/// The time that reading a log takes.
fn reading(log: &str) -> Span {
    info_span!(target: SPANS, "read log", lakescope.log = log, otel.status_code = Empty)
}

/// Key of an application: its log, and its name inside an archive.
fn key(seen: &Seen, found: &Found) -> String {
    match seen.is_archive() {
        true => format!("{}!{}", seen.path, found.name),
        false => seen.path.clone(),
    }
}

fn is_of(app: &model::Application, id: &str, attempt: Option<&str>) -> bool {
    *app.id == *id && app.attempt_id.as_deref() == attempt
}

/// A file name of letters, digits, dots, dashes and underscores, without a dot in front; the
/// `n`th of its kind.
fn safe_name(name: &str, n: usize) -> String {
    const LONGEST: usize = 120;
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .skip_while(|c| *c == '.')
        .take(LONGEST)
        .collect();
    let safe = if safe.is_empty() { "log".to_owned() } else { safe };
    match (n, safe.split_once('.')) {
        (0, _) => safe,
        (n, Some((stem, extension))) => format!("{stem}-{}.{extension}", n + 1),
        (n, None) => format!("{safe}-{}", n + 1),
    }
}

fn row(listed: &Listed) -> Row {
    Row {
        link: format!("/plain{}", listed.page()),
        name: if listed.name.is_empty() { listed.id.clone() } else { listed.name.clone() },
        id: listed.id.clone(),
        user: listed.user.clone(),
        started_ms: listed.started_ms,
        wall_ms: listed.wall_ms(),
        ended: listed.ended_ms.is_some(),
        severity: listed.verdict.severity,
        sentence: listed.verdict.sentence.clone(),
    }
}

impl History for Ingest {
    fn list(&self) -> Vec<Listed> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        // A log that lies in two places is one attempt; the newest copy stands for it.
        let mut newest: HashMap<(&str, Option<&str>), &Listed> = HashMap::new();
        for listed in logs.values().filter_map(|log| log.listed.as_ref().ok()) {
            let known = newest.entry((&listed.id, listed.attempt.as_deref())).or_insert(listed);
            if listed.updated_ms > known.updated_ms {
                *known = listed;
            }
        }
        newest.into_values().cloned().collect()
    }

    fn unreadable(&self) -> Vec<Unreadable> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let faulty = logs.iter().filter_map(|(key, log)| Some((key.clone(), log.listed.clone().err()?)));
        faults.into_iter().chain(faulty).map(|(path, reason)| Unreadable { path, reason }).collect()
    }

    fn open(&self, id: &str, attempt: Option<&str>) -> Result<Option<Arc<Opened>>, String> {
        let Some((key, log)) = self.find(id, attempt) else { return Ok(None) };
        let opened = traces::inside(&opening(id, attempt), || match self.open.get(&key, log.seen.mark) {
            Some(opened) => Ok(opened),
            None => self.reopened(&key, &log),
        });
        match opened {
            Ok(opened) if is_of(opened.app(), id, attempt) => Ok(Some(opened)),
            // The log holds another application since it was looked at, or is gone.
            Ok(_) => Ok(None),
            Err(_) if !self.is_as_seen(&log) => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn log_files(&self, id: &str, attempt: Option<&str>) -> Option<Result<Vec<LogFile>, String>> {
        let (key, log) = self.find(id, attempt).filter(|(_, log)| self.is_still_of(log))?;
        let found = match self.found(&key, &log) {
            Ok(Found { content: Content::Log(parts), .. }) => parts,
            Ok(_) => return None,
            Err(why) => return Some(Err(why)),
        };
        let file = |mut part: read::source::Part| {
            let name = entry_name(&part.name);
            let content = part.open().map_err(|error| format!("cannot read {}: {error}", part.name))?;
            Ok(LogFile { name, content })
        };
        Some(found.into_iter().map(file).collect())
    }

    fn sql_metrics(&self, id: &str, attempt: Option<&str>) -> Option<read::SqlMetrics> {
        let (key, log) = self.find(id, attempt)?;
        let Content::Log(parts) = self.found(&key, &log).ok()?.content else { return None };
        let metrics = traces::inside(&reading(&key), || read::sql_metrics(parts, &self.reading));
        metrics.ok().filter(|_| self.is_still_of(&log))
    }

    fn add(&self, name: &str, content: &mut dyn Read) -> Result<(String, Option<String>), Added> {
        let Some((folder, source)) = &self.uploads else {
            return Err(Added::Refused("this server takes no logs; put them into one of its folders".to_owned()));
        };
        let path = self.keep_upload(folder, name, content)?;
        let failed = |error: anyhow::Error| Added::Failed(format!("{error:#}"));
        let seen = source.look().map_err(failed)?.into_iter().find(|seen| std::path::Path::new(&seen.path) == path);
        let listed = seen.as_ref().map(|seen| {
            self.look_at(None, seen);
            let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
            let of_log = logs.values().filter(|log| log.source.is_none() && log.seen.path == seen.path);
            of_log.map(|log| log.listed.clone()).next()
        });
        match listed.flatten() {
            Some(Ok(listed)) => Ok((listed.id, listed.attempt)),
            other => {
                // What is no log is not kept.
                let _ = std::fs::remove_file(&path);
                self.forget(|log| log.source.is_none() && std::path::Path::new(&log.seen.path) == path);
                let why = other.and_then(Result::err).unwrap_or_else(|| "it is no event log".to_owned());
                Err(Added::Refused(why.replace(&path.display().to_string(), name)))
            }
        }
    }

    fn page(&self, page: &Page<'_>) -> Result<Option<String>, String> {
        match page {
            Page::Applications => Ok(Some(self.first_page())),
            Page::Application { id, attempt } => {
                let Some(opened) = self.open(id, *attempt)? else { return Ok(None) };
                let look = render::Look::of(&self.config);
                Ok(Some(render::html(opened.report(), Some(opened.app()), &look)))
            }
        }
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }
}

/// Name of a log's file inside an archive; of a rolling log with its folder's name.
fn entry_name(path: &str) -> String {
    let path = path.rsplit(": ").next().unwrap_or(path);
    let mut segments = path.rsplit('/');
    let (name, folder) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    match folder.starts_with("eventlog_v2_") {
        true => format!("{folder}/{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{entry_name, safe_name};

    #[test]
    fn names_of_dropped_logs_lead_nowhere_else() {
        for (given, n, safe) in [
            ("app-1.zstd", 0, "app-1.zstd"),
            ("app-1.zstd", 1, "app-1-2.zstd"),
            ("../../etc/passwd", 0, "passwd"),
            ("C:\\logs\\a b", 0, "a_b"),
            (".hidden", 0, "hidden"),
            ("..", 0, "log"),
            ("", 2, "log-3"),
        ] {
            assert_eq!(safe_name(given, n), safe, "{given:?}");
        }
    }

    #[test]
    fn entries_have_the_names_that_spark_gives_them() {
        assert_eq!(entry_name("/logs/eventlog_v2_app-1/events_1_app-1.zstd"), "eventlog_v2_app-1/events_1_app-1.zstd");
        assert_eq!(entry_name("/logs/app-1.lz4"), "app-1.lz4");
        assert_eq!(entry_name("/logs/a.zip: app-1"), "app-1");
    }
}
