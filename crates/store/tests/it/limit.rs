//! `store_max_bytes`: files go, heads stay.

use crate::world::{World, app, key};
use store::{Put, Settings};

fn limited(max_bytes: u64) -> Settings {
    Settings { max_bytes, ..Settings::default() }
}

async fn kept(world: &World) -> String {
    let mut kept = String::new();
    for name in ["a", "b", "c"] {
        if world.get(&key(name, 1)).await.is_some() {
            kept += name;
        }
    }
    kept
}

#[tokio::test]
async fn what_was_not_used_longest_goes_first() {
    let one = World::new().await.put(&key("a", 1), &app("a", 50)).await.file_bytes;
    let world = World::with(limited(one * 5 / 2)).await;
    world.put(&key("a", 1), &app("a", 50)).await;
    world.put(&key("b", 1), &app("b", 50)).await;
    assert!(world.get(&key("a", 1)).await.is_some());
    assert_eq!(world.put(&key("c", 1), &app("c", 50)).await.removed, 1);
    assert_eq!(kept(&world).await, "ac");
    assert_eq!(world.files().len(), 2);
    assert_eq!(world.store.heads().await.unwrap().len(), 3);

    // A lower limit holds from the next opening on.
    let world = world.reopened(limited(one * 3 / 2)).await;
    assert_eq!(kept(&world).await, "c");
    assert_eq!(world.files().len(), 1);
}

#[tokio::test]
async fn one_that_is_larger_than_the_limit_is_not_kept() {
    let world = World::with(limited(2_000)).await;
    assert!(world.put(&key("a", 1), &app("a", 1)).await.kept);
    let Put { file_bytes, kept: is_kept, removed } = world.put(&key("b", 1), &app("b", 1_000)).await;
    assert!(file_bytes > 2_000 && !is_kept && removed == 0);
    assert_eq!(kept(&world).await, "a");
    // In place of a smaller one, too.
    assert!(!world.put(&key("a", 1), &app("a", 1_000)).await.kept);
    assert_eq!(kept(&world).await, "");
    assert!(world.files().is_empty());
    assert_eq!(world.store.heads().await.unwrap().len(), 2);
}
