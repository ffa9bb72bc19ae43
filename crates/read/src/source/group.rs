//! Which names of a listing form which application's log, and in what order.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A file, object or archive entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the place that was listed, with `/` between folders.
    pub path: String,
    /// Stored size in bytes, where known.
    pub size: Option<u64>,
}

/// Files that are one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// How the log is laid out.
    pub kind: LogKind,
    /// A short name for messages, from the names of folder or file. It is not the application's
    /// id, which only the events tell.
    pub name: String,
    /// Paths in reading order.
    pub parts: Vec<String>,
    /// A name says that the application was still running, or that its driver was killed.
    pub in_progress: bool,
    /// What is odd about the names.
    pub notes: Vec<Note>,
}

/// How a log is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogKind {
    /// One file.
    Single,
    /// Spark's rolling log: `eventlog_v2_*/events_<n>_*`.
    Rolling,
    /// A Databricks log folder: `eventlog-YYYY-MM-DD--HH-MM.gz`, then `eventlog`.
    Databricks,
    /// A zip archive by its name; to be looked into.
    Zip,
}

/// What is odd about the names of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Files of a rolling log are not there: the numbers `from` to `to`.
    MissingFiles {
        /// First missing number.
        from: u64,
        /// Last missing number.
        to: u64,
    },
    /// A rolling log without its `appstatus_*` file, so whether it ended is only in the events.
    NoStatusFile,
    /// Spark compacted the log: events of finished jobs before this number are gone by design.
    Compacted {
        /// Number of the compacted file that reading begins with.
        at: u64,
    },
}

/// What [`group`] made of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouped {
    /// The logs, by path.
    pub logs: Vec<LogFiles>,
    /// Names that belong to no log.
    pub ignored: Vec<(String, Ignored)>,
}

/// Why a name belongs to no log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// Its name or a folder's begins with a dot or says it is unfinished or a marker.
    Hidden,
    /// It has no bytes.
    Empty,
    /// A compacted file or a finished copy takes its place.
    Superseded,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::MissingFiles { from, to } if from == to => {
                write!(f, "file {from} of the rolling log is missing")
            }
            Note::MissingFiles { from, to } => {
                write!(f, "files {from} to {to} of the rolling log are missing")
            }
            Note::NoStatusFile => f.write_str("the rolling log has no appstatus file"),
            Note::Compacted { at } => {
                write!(f, "Spark compacted the log up to file {at}: events of finished jobs are left out")
            }
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ignored::Hidden => "hidden file",
            Ignored::Empty => "empty file",
            Ignored::Superseded => "another file takes its place",
        })
    }
}

/// Sorts a listing into logs. Only names and sizes are looked at; whether a single file is an event
/// log at all is for [`probe`](super::probe) to tell.
pub fn group(listing: &[Entry]) -> Grouped {
    let mut folders = BTreeMap::<&str, Folder>::new();
    let mut grouped = Grouped::default();
    for entry in listing {
        let (dir, name) = split_path(&entry.path);
        let folder = folders.entry(dir).or_default();
        match classify(entry, name) {
            Role::Ignored(why) => grouped.ignored.push((entry.path.clone(), why)),
            Role::Event(file) => folder.rolling.entry(file.log).or_default().files.push(file),
            Role::Status { log, running } => {
                let log = folder.rolling.entry(log).or_default();
                log.finished |= !running;
                log.running |= running;
            }
            Role::Databricks => folder.databricks.push(entry.path.as_str()),
            Role::Single => folder.singles.push(entry.path.as_str()),
        }
    }
    for (dir, folder) in folders {
        folder.finish(dir, &mut grouped);
    }
    grouped.logs.sort_by(|a, b| a.parts.cmp(&b.parts));
    grouped
}

#[derive(Default)]
struct Folder<'a> {
    rolling: BTreeMap<&'a str, RollingLog<'a>>,
    databricks: Vec<&'a str>,
    singles: Vec<&'a str>,
}

#[derive(Default)]
struct RollingLog<'a> {
    files: Vec<EventFile<'a>>,
    finished: bool,
    running: bool,
}

/// `events_<number>_<log>[.codec][.compact]`
struct EventFile<'a> {
    path: &'a str,
    log: &'a str,
    number: u64,
    compact: bool,
}

/// What a name says about a file.
enum Role<'a> {
    Event(EventFile<'a>),
    Status { log: &'a str, running: bool },
    Databricks,
    Single,
    Ignored(Ignored),
}

fn classify<'a>(entry: &'a Entry, name: &'a str) -> Role<'a> {
    let hidden = |part: &str| part.starts_with('.') && part != "." && part != "..";
    // `__MACOSX` and `_temporary` are left by archivers and writers, `_SUCCESS` by Spark jobs.
    let marker = |part: &str| matches!(part, "__MACOSX" | "_temporary" | "_SUCCESS");
    if entry.path.split('/').any(|part| hidden(part) || marker(part)) {
        return Role::Ignored(Ignored::Hidden);
    }
    if let Some(status) = name.strip_prefix("appstatus_") {
        let log = status.strip_suffix(".inprogress");
        return Role::Status { log: log.unwrap_or(status), running: log.is_some() };
    }
    if name.is_empty() || entry.size == Some(0) {
        return Role::Ignored(Ignored::Empty);
    }
    if let Some(file) = event_file(&entry.path, name) {
        return Role::Event(file);
    }
    if name == "eventlog" || databricks_hour(name).is_some() {
        return Role::Databricks;
    }
    Role::Single
}

fn event_file<'a>(path: &'a str, name: &'a str) -> Option<EventFile<'a>> {
    let (number, rest) = name.strip_prefix("events_")?.split_once('_')?;
    let number = number.parse().ok()?;
    // Spark replaces dots in application and attempt ids, so the first dot begins the endings.
    let (log, endings) = rest.split_once('.').unwrap_or((rest, ""));
    let compact = endings == "compact" || endings.ends_with(".compact");
    Some(EventFile { path, log, number, compact })
}

/// The time in `eventlog-YYYY-MM-DD--HH-MM[.gz]`, which sorts as text.
fn databricks_hour(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("eventlog-")?;
    let time = rest.split('.').next().unwrap_or(rest);
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    (shape == "9999-99-99--99-99").then_some(time)
}

impl Folder<'_> {
    fn finish(self, dir: &str, grouped: &mut Grouped) {
        let several = self.rolling.len() > 1;
        for (log, mut files) in self.rolling {
            if files.files.is_empty() {
                continue;
            }
            let name = match base(dir).strip_prefix("eventlog_v2_") {
                Some(name) if !several => name,
                _ => log,
            };
            grouped.logs.push(files.finish(name.to_owned(), &mut grouped.ignored));
        }
        if !self.databricks.is_empty() {
            grouped.logs.push(databricks(dir, self.databricks));
        }
        singles(self.singles, grouped);
    }
}

impl RollingLog<'_> {
    fn finish(&mut self, name: String, ignored: &mut Vec<(String, Ignored)>) -> LogFiles {
        // Compacted files sort before plain ones of the same number, which they replace.
        self.files.sort_by_key(|f| (f.number, !f.compact, f.path));
        let compact = self.files.iter().filter(|f| f.compact).map(|f| f.number).max();
        let mut notes: Vec<Note> = compact.map(|at| Note::Compacted { at }).into_iter().collect();
        if !self.finished && !self.running {
            notes.push(Note::NoStatusFile);
        }
        let mut parts = Vec::new();
        let (mut last, mut next) = (None, compact.unwrap_or(1));
        for file in &self.files {
            if compact.is_some_and(|at| file.number < at) || last == Some(file.number) {
                ignored.push((file.path.to_owned(), Ignored::Superseded));
                continue;
            }
            if file.number > next {
                notes.push(Note::MissingFiles { from: next, to: file.number - 1 });
            }
            parts.push(file.path.to_owned());
            last = Some(file.number);
            next = file.number.saturating_add(1);
        }
        let in_progress = self.running && !self.finished;
        LogFiles { kind: LogKind::Rolling, name, parts, in_progress, notes }
    }
}

fn databricks(dir: &str, mut paths: Vec<&str>) -> LogFiles {
    // The newest part has no time in its name and comes last.
    paths.sort_by_key(|path| {
        let path: &&str = path;
        let hour = databricks_hour(base(path));
        (hour.is_none(), hour.unwrap_or_default(), *path)
    });
    let name = if dir.is_empty() { "eventlog" } else { base(dir) };
    LogFiles {
        kind: LogKind::Databricks,
        name: name.to_owned(),
        parts: paths.into_iter().map(str::to_owned).collect(),
        in_progress: false,
        notes: Vec::new(),
    }
}

/// Files that stand for themselves. On object stores, the end of an application copies the log to
/// its final name, and the running one may stay behind.
fn singles(paths: Vec<&str>, grouped: &mut Grouped) {
    let all: HashSet<&str> = paths.iter().copied().collect();
    for path in paths {
        let finished = path.strip_suffix(".inprogress");
        if finished.is_some_and(|finished| all.contains(finished)) {
            grouped.ignored.push((path.to_owned(), Ignored::Superseded));
            continue;
        }
        let name = base(finished.unwrap_or(path));
        let kind = if has_ending(name, "zip") { LogKind::Zip } else { LogKind::Single };
        grouped.logs.push(LogFiles {
            kind,
            name: without_codec(name).to_owned(),
            parts: vec![path.to_owned()],
            in_progress: finished.is_some(),
            notes: Vec::new(),
        });
    }
}

fn without_codec(name: &str) -> &str {
    const ENDINGS: [&str; 9] = ["zstd", "zst", "lz4", "snappy", "lzf", "gz", "zip", "json", "log"];
    match ENDINGS.iter().find(|ending| has_ending(name, ending)) {
        Some(ending) => without_codec(&name[..name.len() - ending.len() - 1]),
        None => name,
    }
}

fn has_ending(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, e)| !stem.is_empty() && e.eq_ignore_ascii_case(ending))
}

fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn base(path: &str) -> &str {
    split_path(path).1
}
