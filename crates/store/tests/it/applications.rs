//! Applications and heads: put in, given back, stale, forgotten.

use crate::world::{World, app, head, key};
use model::Application;
use std::sync::Arc;
use std::time::Instant;
use store::{Known, LogKey, Mark, Settings};

#[tokio::test]
async fn gives_back_what_was_put_in_until_the_log_changes() {
    let world = World::new().await;
    let kept = key("/logs/a", 10);
    assert_eq!(world.get(&kept).await, None);
    world.put(&kept, &app("a", 5)).await;
    assert_eq!(world.get(&kept).await, Some(app("a", 5)));
    let mark = kept.mark;
    for changed in
        [Mark { bytes: 11, ..mark }, Mark { modified_ms: mark.modified_ms + 1, ..mark }, Mark { files: 2, ..mark }]
    {
        let stale = LogKey { mark: changed, ..kept.clone() };
        assert_eq!(world.get(&stale).await, None, "{changed:?}");
    }
    assert_eq!(world.get(&key("/logs/b", 10)).await, None);

    // The log has grown: one file, one head, the new ones.
    let grown = key("/logs/a", 20);
    world.put(&grown, &app("a", 7)).await;
    assert_eq!(world.get(&kept).await, None);
    assert_eq!(world.get(&grown).await, Some(app("a", 7)));
    assert_eq!(world.store.heads().await.unwrap(), [Known { key: grown, head: Ok(head("a")) }]);
    assert_eq!(world.files().len(), 1);
}

#[tokio::test]
async fn survives_a_restart_and_is_forgotten_on_request() {
    let world = World::new().await;
    world.put(&key("/logs/a", u64::MAX), &app("a", 5)).await;
    world.store.put_unreadable(&key("/logs/b", 3), "no event in 7 lines").await.unwrap();
    let world = world.reopened(Settings::default()).await;
    let unreadable = Known { key: key("/logs/b", 3), head: Err("no event in 7 lines".to_owned()) };
    let readable = Known { key: key("/logs/a", u64::MAX), head: Ok(head("a")) };
    assert_eq!(world.store.heads().await.unwrap(), [readable, unreadable.clone()]);
    assert_eq!(world.get(&key("/logs/b", 3)).await, None);

    assert!(world.store.forget("/logs/a").await.unwrap());
    assert!(!world.store.forget("/logs/a").await.unwrap());
    assert_eq!(world.get(&key("/logs/a", u64::MAX)).await, None);
    assert_eq!(world.store.heads().await.unwrap(), [unreadable]);
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn a_log_that_broke_takes_its_application_along_and_may_come_back() {
    let world = World::new().await;
    world.put(&key("/logs/a", 1), &app("a", 5)).await;
    world.store.put_unreadable(&key("/logs/a", 2), "cut").await.unwrap();
    assert_eq!(world.get(&key("/logs/a", 1)).await, None);
    assert!(world.files().is_empty());
    world.put(&key("/logs/a", 3), &Application::default()).await;
    assert_eq!(world.get(&key("/logs/a", 3)).await, Some(Application::default()));
}

#[tokio::test]
async fn another_reader_begins_anew() {
    let world = World::with(Settings { reader: "1".to_owned(), ..Settings::default() }).await;
    world.put(&key("/logs/a", 1), &app("a", 5)).await;
    let world = world.reopened(Settings { reader: "2".to_owned(), ..Settings::default() }).await;
    assert_eq!(world.store.heads().await.unwrap(), []);
    assert_eq!(world.get(&key("/logs/a", 1)).await, None);
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn lists_two_thousand_heads() {
    let world = World::new().await;
    for number in 0..2_000 {
        world.store.put_unreadable(&key(&format!("/logs/{number:05}"), number), "cut").await.unwrap();
    }
    let begin = Instant::now();
    let heads = world.store.heads().await.unwrap();
    println!("2,000 heads in {:?}", begin.elapsed());
    assert_eq!(heads.len(), 2_000);
    assert_eq!(heads[1_999].key, key("/logs/01999", 1_999));
}

/// Writers and readers of one path at a time: whole or nothing, and the last one stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_a_time() {
    let world = Arc::new(World::new().await);
    let at_work = (0..4).map(|worker| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for turn in 0..20 {
                let key = key("/logs/a", turn);
                if worker == 0 {
                    world.put(&key, &app("a", turn as i64 * 20)).await;
                } else if let Some(kept) = world.get(&key).await {
                    assert!(kept == app("a", turn as i64 * 20), "turn {turn} came back changed");
                }
            }
        })
    });
    for worker in at_work.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    assert_eq!(world.get(&key("/logs/a", 19)).await, Some(app("a", 380)));
    assert_eq!(world.files().len(), 1);
}
