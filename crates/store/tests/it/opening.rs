//! One directory, one process, one version.

use crate::world::{World, app, key};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use std::fs;
use store::{Accounts, Error, Settings, Store};

#[tokio::test]
async fn two_never_share_a_directory() {
    let world = World::new().await;
    let dir = world.store.dir().to_owned();
    let second = Store::open(&dir, Settings::default()).await.unwrap_err();
    assert!(matches!(&second, Error::InUse { .. }));
    let message = second.to_string();
    assert!(message.contains(&dir.display().to_string()) && message.contains("stop that process"), "{message}");
    drop(world.reopened(Settings::default()).await);
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let world = World::new().await;
    let dir = world.store.dir().to_owned();
    let mut database = SqliteConnectOptions::new().filename(dir.join("lakescope.db")).connect().await.unwrap();
    let insert = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                  VALUES (999, 'of the future', TRUE, x'00', 0)";
    sqlx::query(insert).execute(&mut database).await.unwrap();
    world.store.close().await;
    let error = Store::open(&dir, Settings::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Newer { found: 999, .. }), "{error}");
    assert!(error.to_string().contains("lakescope.db is of version 999, newer than this program's"), "{error}");
}

#[tokio::test]
async fn what_is_no_database_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lakescope.db"), "not a database, ".repeat(100)).unwrap();
    let error = Store::open(folder.path(), Settings::default()).await.unwrap_err().to_string();
    assert!(error.contains("lakescope.db") && error.contains("restore it from a backup"), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file, Settings::default()).await.unwrap_err().to_string();
    assert!(error.contains("name another data directory"), "{error}");
}

#[tokio::test]
async fn left_over_files_go_and_foreign_ones_stay() {
    let world = World::new().await;
    world.put(&key("/logs/a", 1), &app("a", 4)).await;
    let folder = world.store.dir().join("applications");
    let left_over = format!("{}.app", "0".repeat(32));
    for name in [&left_over, &format!("{left_over}.7.tmp"), "notes.txt"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let world = world.reopened(Settings::default()).await;
    let files = world.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.contains(&folder.join("notes.txt")));
    assert!(world.get(&key("/logs/a", 1)).await.is_some());
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_look() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new().await;
    world.put(&key("/logs/a", 1), &app("a", 4)).await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = world.store.dir();
    assert_eq!((mode(dir), mode(&dir.join("applications"))), (0o700, 0o700));
    assert_eq!((mode(&dir.join("lakescope.db")), mode(&world.files()[0])), (0o600, 0o600));
}

#[tokio::test]
async fn a_new_directory_may_be_opened_by_many_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("data");
        let opening: Vec<_> = (0..8).map(|_| tokio::spawn(Accounts::open(dir.clone()))).collect();
        for opened in opening {
            assert_eq!(opened.await.unwrap().unwrap().tokens().await.unwrap(), []);
        }
    }
}
