//! Access tokens.

use crate::world::World;
use std::fs;
use store::{NewToken, Principal, Role, Settings, Token};

const NOW: i64 = 1_795_975_612_432;
const MINUTE: i64 = 60_000;

async fn is_good(world: &World, secret: &str, now_ms: i64) -> bool {
    world.store.accounts().verify(secret, now_ms).await.unwrap().is_some()
}

#[tokio::test]
async fn a_secret_leads_to_its_principal() {
    let world = World::new().await;
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let NewToken { id, secret } = world.store.accounts().create_token("ci", role, None, NOW).await.unwrap();
        assert!(secret.len() == 47 && secret.starts_with("lks_"), "{secret}");
        let principal = Principal { token_id: id, name: "ci".to_owned(), role };
        assert_eq!(world.store.accounts().verify(&secret, NOW + 1).await.unwrap(), Some(principal));
        assert_eq!(Role::of_name(role.name()), Some(role));
    }
    assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
    assert_eq!(Role::of_name("root"), None);
    let world = world.reopened(Settings::default()).await;
    assert_eq!(world.store.accounts().tokens().await.unwrap().len(), 3);
}

#[tokio::test]
async fn wrong_expired_and_revoked_ones_are_worth_nothing() {
    let world = World::new().await;
    let NewToken { id, secret } =
        world.store.accounts().create_token("ci", Role::Admin, Some(NOW + 1_000), NOW).await.unwrap();
    let swapped = format!("{}{}", &secret[..46], if secret.ends_with('A') { 'B' } else { 'A' });
    let other = format!("lks_{}", "A".repeat(43));
    for wrong in ["", "lks_", &secret[..46], &secret[4..], &swapped, &other, &format!("{secret} "), "' OR 1=1 --"] {
        assert!(!is_good(&world, wrong, NOW).await, "{wrong}");
    }
    assert!(is_good(&world, &secret, NOW + 999).await);
    assert!(!is_good(&world, &secret, NOW + 1_000).await);
    assert!(!world.store.accounts().revoke("another").await.unwrap());
    assert!(world.store.accounts().revoke(&id).await.unwrap());
    assert!(!is_good(&world, &secret, NOW).await);
    assert_eq!(world.store.accounts().tokens().await.unwrap(), []);
}

#[tokio::test]
async fn use_is_noted_once_a_minute() {
    let world = World::new().await;
    let NewToken { id, secret } = world.store.accounts().create_token("ci", Role::Viewer, None, NOW).await.unwrap();
    for (now_ms, last_used_ms) in [
        (NOW + 5, NOW + 5),
        (NOW + 5 + MINUTE - 1, NOW + 5),
        (NOW + 5 + MINUTE, NOW + 5 + MINUTE),
        (NOW, NOW + 5 + MINUTE),
    ] {
        assert!(is_good(&world, &secret, now_ms).await);
        let token = Token {
            id: id.clone(),
            name: "ci".to_owned(),
            role: Role::Viewer,
            created_ms: NOW,
            expires_ms: None,
            last_used_ms: Some(last_used_ms),
        };
        assert_eq!(world.store.accounts().tokens().await.unwrap(), [token]);
    }
}

#[tokio::test]
async fn no_secret_is_kept_or_printed() {
    let world = World::new().await;
    let token = world.store.accounts().create_token("ci", Role::Viewer, None, NOW).await.unwrap();
    assert!(is_good(&world, &token.secret, NOW).await);
    assert!(!format!("{token:?} {:?}", world.store.accounts().tokens().await.unwrap()).contains(&token.secret[4..]));
    let mut found_name = false;
    for file in fs::read_dir(world.store.dir()).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.is_file()) {
        let bytes = fs::read(&file).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!holds(&token.secret) && !holds(&token.secret[4..]), "{}", file.display());
        found_name |= holds(&token.id);
    }
    assert!(found_name, "looked into the wrong files");
}
