//! A file that is not as it was written is as good as none.

use crate::world::{World, app, key};
use std::fs;
use store::LogKey;
use twox_hash::XxHash64;

struct Damage {
    world: World,
    key: LogKey,
    /// The file as it was written.
    whole: Vec<u8>,
}

impl Damage {
    async fn new() -> Self {
        let world = World::new().await;
        let key = key("/logs/a", 1);
        world.put(&key, &app("a", 4)).await;
        let whole = fs::read(&world.files()[0]).unwrap();
        Self { world, key, whole }
    }

    /// Puts these bytes in place of the file and expects a miss that leaves nothing behind.
    async fn is_a_miss(&self, bytes: &[u8], what: &str) {
        self.world.put(&self.key, &app("a", 4)).await;
        fs::write(&self.world.files()[0], bytes).unwrap();
        let found = self.world.store.application(&self.key).await;
        assert!(found.is_ok_and(|app| app.is_none()), "{what}");
        assert!(self.world.files().is_empty(), "{what}: the file is still there");
        assert_eq!(self.world.store.heads().await.unwrap().len(), 1, "{what}: the head is gone");
    }
}

#[tokio::test]
async fn cut_anywhere() {
    let damage = Damage::new().await;
    for len in (0..damage.whole.len()).filter(|len| *len < 100 || len % 7 == 0) {
        damage.is_a_miss(&damage.whole[..len], &format!("cut to {len} bytes")).await;
    }
    damage.is_a_miss(&[&damage.whole[..], b"\0"].concat(), "one byte more").await;
}

#[tokio::test]
async fn flipped_bits() {
    let damage = Damage::new().await;
    let mut random = 1_u64;
    for at in (0..damage.whole.len()).filter(|at| *at < 100 || at % 5 == 0) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut bytes = damage.whole.clone();
        bytes[at] ^= 1 << (random >> 61);
        damage.is_a_miss(&bytes, &format!("byte {at} flipped")).await;
    }
}

/// With every checksum right: what stands in the header is still not believed.
#[tokio::test]
async fn other_versions_and_mad_lengths() {
    let damage = Damage::new().await;
    let with = |at: usize, new: &[u8]| {
        let mut bytes = damage.whole.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        let checksum = XxHash64::oneshot(0, &bytes[..88]);
        bytes[88..96].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    damage.is_a_miss(&with(0, b"another\n"), "another kind of file").await;
    damage.is_a_miss(&with(8, &1_u32.to_le_bytes()), "an older form").await;
    damage.is_a_miss(&with(8, &u32::MAX.to_le_bytes()), "a newer form").await;
    damage.is_a_miss(&with(16, &[0; 32]), "another log").await;
    for (block, stored, raw) in [("columns", 48, 56), ("the rest", 64, 72)] {
        damage.is_a_miss(&with(stored, &u64::MAX.to_le_bytes()), &format!("{block} without end")).await;
        for length in [0, 1, 10_000, 1 << 40, u64::MAX] {
            let damaged = with(raw, &u64::to_le_bytes(length));
            damage.is_a_miss(&damaged, &format!("{block} of {length} bytes when decompressed")).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_was_deleted_or_swapped() {
    let world = World::new().await;
    let (a, b) = (key("/logs/a", 1), key("/logs/b", 1));
    world.put(&a, &app("a", 4)).await;
    let of_a = world.files();
    world.put(&b, &app("b", 4)).await;
    let of_b = world.files().into_iter().find(|file| !of_a.contains(file)).unwrap();
    fs::copy(&of_a[0], &of_b).unwrap();
    assert_eq!(world.get(&b).await, None);
    assert!(world.get(&a).await.is_some());
    fs::remove_file(&of_a[0]).unwrap();
    assert_eq!(world.get(&a).await, None);
}
