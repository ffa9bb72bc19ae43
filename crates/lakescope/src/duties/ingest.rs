//! Watches folders of event logs: what is new or has grown is read, what vanished is forgotten.
//!
//! Of every log the head that lists need stays in memory; whole applications only of the logs that
//! were asked for last.

use crate::inputs::local;
use crate::render::{self, Row};
use diagnose::Config;
use read::source::{LogFiles, LogKind, Part, group};
use serve::{History, Listed, Opened, Page, Unreadable};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

/// The folders and what they hold.
#[derive(Debug)]
pub struct Ingest {
    folders: Vec<PathBuf>,
    options: read::Options,
    config: Arc<Config>,
    /// By the path of the first file.
    logs: RwLock<BTreeMap<PathBuf, Log>>,
    /// Whole applications, the one asked for last at the end.
    open: Mutex<Vec<(PathBuf, Arc<Opened>)>>,
    max_open: usize,
    ready: AtomicBool,
    revision: AtomicU64,
}

/// One log as it was when it was read.
#[derive(Clone, Debug)]
struct Log {
    files: Vec<PathBuf>,
    mark: Mark,
    in_progress: bool,
    /// What lists show, or why it cannot be read.
    listed: Result<Listed, String>,
}

/// Tells whether files have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mark {
    bytes: u64,
    /// Latest modification, epoch ms.
    modified_ms: i64,
}

impl Mark {
    fn of(files: &[PathBuf]) -> std::io::Result<Self> {
        let mut mark = Self::default();
        for file in files {
            let about = std::fs::metadata(file)?;
            let modified = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            mark.bytes += about.len();
            mark.modified_ms = mark.modified_ms.max(i64::try_from(modified.as_millis()).unwrap_or_default());
        }
        Ok(mark)
    }
}

impl Ingest {
    /// Watches `folders` and keeps at most `max_open` whole applications.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>, options: read::Options, config: Config, max_open: usize) -> Self {
        Self {
            folders,
            options,
            config: Arc::new(config),
            logs: RwLock::default(),
            open: Mutex::default(),
            max_open: max_open.max(1),
            ready: AtomicBool::new(false),
            revision: AtomicU64::new(0),
        }
    }

    /// Looks at all folders once: reads what is new or has changed, forgets what is gone.
    pub fn scan(&self) {
        let mut found: BTreeMap<PathBuf, (LogFiles, Vec<PathBuf>)> = BTreeMap::new();
        for folder in &self.folders {
            for log in group(&local::listing(folder)).logs {
                let files: Vec<PathBuf> = log.parts.iter().map(|part| folder.join(part)).collect();
                if log.kind != LogKind::Zip
                    && let Some(first) = files.first()
                {
                    found.insert(first.clone(), (log, files));
                }
            }
        }
        self.forget(|first| !found.contains_key(first));
        for (first, (log, files)) in found {
            self.look_at(first, log.in_progress, files);
        }
        self.ready.store(true, Ordering::Release);
    }

    fn forget(&self, is_gone: impl Fn(&Path) -> bool) {
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        let before = logs.len();
        logs.retain(|first, _| !is_gone(first));
        if logs.len() < before {
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn look_at(&self, first: PathBuf, in_progress: bool, files: Vec<PathBuf>) {
        // A file that vanishes meanwhile is forgotten by the next scan.
        let Ok(mark) = Mark::of(&files) else { return };
        let known = self.logs.read().unwrap_or_else(PoisonError::into_inner).get(&first).map(|log| log.mark.clone());
        if known.as_ref() == Some(&mark) {
            return;
        }
        let read = self.read(&first, &files, in_progress);
        let listed = read.map(|opened| {
            let listed = Listed::of(&opened, mark.modified_ms);
            self.keep_open(first.clone(), opened);
            listed
        });
        let log = Log { files, mark, in_progress, listed };
        self.logs.write().unwrap_or_else(PoisonError::into_inner).insert(first, log);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self, first: &Path, files: &[PathBuf], in_progress: bool) -> Result<Arc<Opened>, String> {
        let part = |file: &PathBuf| {
            let opened = file.clone();
            let size = std::fs::metadata(file).ok().map(|about| about.len());
            Part::new(file.display().to_string(), size, move || Ok(Box::new(File::open(&opened)?)))
        };
        let app = read::event_log(files.iter().map(part).collect(), &self.options);
        let mut app = app.map_err(|error| format!("cannot read {}: {error}", first.display()))?;
        app.log.in_progress |= in_progress;
        Ok(Arc::new(Opened::new(app, Arc::clone(&self.config))))
    }

    /// Keeps an application open; the one that was not asked for longest goes.
    fn keep_open(&self, first: PathBuf, app: Arc<Opened>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(path, _)| *path != first);
        open.push((first, app));
        let surplus = open.len().saturating_sub(self.max_open);
        open.drain(..surplus);
    }

    fn find(&self, id: &str, attempt: Option<&str>) -> Option<(PathBuf, Log)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |log: &Log| {
            let listed = log.listed.as_ref().ok();
            listed.is_some_and(|listed| listed.id == id && listed.attempt.as_deref() == attempt)
        };
        logs.iter().find(|(_, log)| is_meant(log)).map(|(first, log)| (first.clone(), log.clone()))
    }

    fn first_page(&self) -> String {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let listed = logs.values().filter_map(|log| log.listed.as_ref().ok());
        let unreadable: Vec<String> = logs.values().filter_map(|log| log.listed.clone().err()).collect();
        render::applications_html(listed.map(row).collect(), &unreadable, self.is_ready())
    }

    fn opened(&self, first: &Path) -> Option<Arc<Opened>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|(path, _)| path == first)?;
        let found = open.remove(at);
        open.push(found.clone());
        Some(found.1)
    }
}

fn row(listed: &Listed) -> Row {
    let attempt = listed.attempt.as_ref().map(|a| format!("/{}", segment(a))).unwrap_or_default();
    Row {
        link: format!("/applications/{}{attempt}", segment(&listed.id)),
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

/// A segment of a path: an id comes from a log, where anything may stand.
fn segment(text: &str) -> String {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes().map(|b| if safe(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

impl History for Ingest {
    fn list(&self) -> Vec<Listed> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.values().filter_map(|log| Some(log.listed.as_ref().ok()?.clone())).collect()
    }

    fn open(&self, id: &str, attempt: Option<&str>) -> Result<Option<Arc<Opened>>, String> {
        let Some((first, log)) = self.find(id, attempt) else { return Ok(None) };
        if let Some(app) = self.opened(&first) {
            return Ok(Some(app));
        }
        let app = self.read(&first, &log.files, log.in_progress)?;
        self.keep_open(first, Arc::clone(&app));
        Ok(Some(app))
    }

    fn log_files(&self, id: &str, attempt: Option<&str>) -> Option<Vec<PathBuf>> {
        self.find(id, attempt).map(|(_, log)| log.files)
    }

    fn page(&self, page: &Page<'_>) -> Result<Option<String>, String> {
        match page {
            Page::Applications => Ok(Some(self.first_page())),
            Page::Application { id, attempt } => {
                let Some(app) = self.open(id, *attempt)? else { return Ok(None) };
                Ok(Some(render::html(app.report(), Some(app.app()), &render::Look::of(&self.config))))
            }
        }
    }

    fn unreadable(&self) -> Vec<Unreadable> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let faulty = logs.iter().filter_map(|(path, log)| Some((path, log.listed.clone().err()?)));
        faulty.map(|(path, reason)| Unreadable { path: path.display().to_string(), reason }).collect()
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}
