//! The audit log.

use crate::world::World;
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use store::{Audited, Entry};

fn entry(number: i64) -> Entry {
    Entry {
        at_ms: number,
        who: "ada".to_owned(),
        what: "token.create".to_owned(),
        object: format!("token {number}"),
        outcome: "done".to_owned(),
        address: "127.0.0.1".to_owned(),
    }
}

#[tokio::test]
async fn pages_from_the_latest_entry_back() {
    let world = World::new().await;
    // All at one time: the order is that of adding.
    for number in 0..5 {
        world.store.accounts().audit(&Entry { at_ms: 7, ..entry(number) }).await.unwrap();
    }
    let (mut before, mut pages) = (None, Vec::new());
    loop {
        let page: Vec<Audited> = world.store.accounts().audits(2, before).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        pages.push(page.into_iter().map(|audited| audited.entry.object).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec!["token 4", "token 3"], vec!["token 2", "token 1"], vec!["token 0"]]);
    assert_eq!(world.store.accounts().audits(1, None).await.unwrap()[0].entry, Entry { at_ms: 7, ..entry(4) });
    assert!(world.store.accounts().audits(0, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn entries_are_neither_changed_nor_deleted() {
    let world = World::new().await;
    world.store.accounts().audit(&entry(1)).await.unwrap();
    let path = world.store.dir().join("lakescope.db");
    let mut database = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    for statement in ["UPDATE audit SET who = 'eve'", "DELETE FROM audit"] {
        let refused = sqlx::query(statement).execute(&mut database).await.unwrap_err();
        assert!(refused.to_string().contains("append only"), "{refused}");
    }
    assert_eq!(world.store.accounts().audits(9, None).await.unwrap()[0].entry, entry(1));
}
