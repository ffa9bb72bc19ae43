//! A process that ends in the middle of its work, or has no room for it.

use crate::world::{app, files, get, head, key, report};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{LogKey, Settings, Store};

/// Names the data directory to a child.
const DIR: &str = "STORE_TEST_DIR";

fn child(test: &str) -> [String; 4] {
    [test.to_owned(), "--exact".to_owned(), "--ignored".to_owned(), "--nocapture".to_owned()]
}

fn dir_of_child() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

/// The log that the child reads in its n-th turn: few paths, ever other states.
fn nth(turn: u64) -> LogKey {
    key(&format!("/logs/{}", turn % 3), turn)
}

fn tasks(key: &LogKey) -> i64 {
    500 + key.mark.bytes as i64 % 1_500
}

#[tokio::test]
#[ignore = "run by the test that kills it"]
async fn puts_without_end() {
    let Some(dir) = dir_of_child() else { return };
    let store = Store::open(dir, Settings::default()).await.unwrap();
    let first = store.heads().await.unwrap().iter().map(|known| known.key.mark.bytes + 1).max().unwrap_or(1);
    for turn in first.. {
        let key = nth(turn);
        store.put_application(&key, &head("a"), Arc::new(app("a", tasks(&key))), report("a")).await.unwrap();
    }
}

#[tokio::test]
async fn a_store_opens_after_its_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let (mut loaded, mut turns) = (0, 0);
    for round in 0..25 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(child("killed::puts_without_end"))
            .env(DIR, &dir)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + round * 13));
        process.kill().unwrap();
        process.wait().unwrap();
        let store = Store::open(&dir, Settings::default()).await.unwrap();
        for known in store.heads().await.unwrap() {
            turns = turns.max(known.key.mark.bytes);
            if let Some(kept) = get(&store, &known.key).await {
                assert!(kept == app("a", tasks(&known.key)), "{:?} came back changed", known.key);
                loaded += 1;
            }
        }
        let left_over = files(&dir).into_iter().find(|file| file.extension().is_some_and(|e| e == "tmp"));
        assert_eq!(left_over, None);
        store.close().await;
    }
    println!("{turns} applications put in, {loaded} loaded after a kill");
    assert!(loaded > 0);
}

#[tokio::test]
#[ignore = "run by the test that gives it no room"]
async fn puts_more_than_there_is_room_for() {
    let Some(dir) = dir_of_child() else { return };
    let store = Store::open(&dir, Settings::default()).await.unwrap();
    let put = store.put_application(&key("/logs/a", 2), &head("a"), Arc::new(app("a", 5_000)), report("a")).await;
    let message = put.unwrap_err().to_string();
    assert!(message.contains("applications") && message.contains("free space"), "{message}");
    // What was there still is.
    assert_eq!(get(&store, &key("/logs/a", 1)).await, Some(app("a", 5)));
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let store = Store::open(&dir, Settings::default()).await.unwrap();
    store.put_application(&key("/logs/a", 1), &head("a"), Arc::new(app("a", 5)), report("a")).await.unwrap();
    store.close().await;
    // A limit on the size of files says no in the middle of writing, as a full disk does.
    let status = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 200; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(child("killed::puts_more_than_there_is_room_for"))
        .env(DIR, &dir)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(files(&dir).len(), 1);
}
