//! Small stores, keys and applications.

use model::{Application, EndReason, Metric, Stage, TaskRow, TaskStatus, Text};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Head, LogKey, Mark, Put, Settings, Store};

pub struct World {
    // Dropped after the store.
    pub store: Store,
    folder: tempfile::TempDir,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("data"), settings).await.unwrap();
        Self { store, folder }
    }

    pub async fn reopened(self, settings: Settings) -> Self {
        let dir = self.store.dir().to_owned();
        self.store.close().await;
        Self { store: Store::open(dir, settings).await.unwrap(), folder: self.folder }
    }

    pub async fn put(&self, key: &LogKey, app: &Application) -> Put {
        self.store.put_application(key, &head(&app.id), Arc::new(app.clone()), report(&app.id)).await.unwrap()
    }

    /// The application that is kept of a log; its report is that of the application.
    pub async fn get(&self, key: &LogKey) -> Option<Application> {
        get(&self.store, key).await
    }

    pub fn files(&self) -> Vec<PathBuf> {
        files(self.store.dir())
    }
}

/// The application that is kept of a log; its report is that of the application.
pub async fn get(store: &Store, key: &LogKey) -> Option<Application> {
    let kept = store.application(key).await.unwrap()?;
    assert_eq!(kept.report, report(&kept.app.id));
    Some(kept.app)
}

/// The files of applications in a data directory.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir.join("applications")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

pub fn key(path: &str, bytes: u64) -> LogKey {
    LogKey { path: path.to_owned(), mark: Mark { bytes, modified_ms: 1_795_975_612_432, files: 1 } }
}

/// What was made of an application.
pub fn report(id: &str) -> String {
    format!(r#"{{"of":"{id}"}}"#)
}

pub fn head(id: &str) -> Head {
    Head { application_id: id.to_owned(), attempt_id: Some("1".to_owned()), json: format!(r#"{{"name":"{id}"}}"#) }
}

/// One stage with tasks whose figures hardly compress; every third task failed, all of them for
/// the same reason.
pub fn app(id: &str, tasks: i64) -> Application {
    let mut app = Application { id: id.into(), started_ms: Some(1_000), ..Application::default() };
    let why: Text = "java.lang.OutOfMemoryError: Java heap space".into();
    let mut stage = Stage::new(0, 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for task in 0..tasks {
        let mut row = TaskRow::new(task);
        for metric in Metric::ALL_STORED {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            row.set(metric, (random >> 34) as i64);
        }
        if task % 3 == 0 {
            row.status = TaskStatus::Failed;
            row.failure = Some(Box::new(EndReason::Other { reason: why.clone() }));
        }
        stage.tasks.push(row);
    }
    app.stages.push(stage);
    app
}
