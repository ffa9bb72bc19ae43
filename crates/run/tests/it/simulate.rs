//! Worlds of a quick run; `LAKESCOPE_SEED` plays one again. `cargo xtask accept simulate` plays more.

use std::collections::BTreeMap;
use testkit::worlds;

#[test]
fn every_world_comes_to_its_end() {
    let wanted = std::env::var("LAKESCOPE_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let failed = worlds::play_all(wanted.map_or(0..3_000, |seed| seed..seed + 1));
    assert!(failed.is_empty(), "play {failed:?} again with LAKESCOPE_SEED={}", failed[0]);
}

#[test]
fn the_worlds_are_not_dull() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (what, happened) in (0..500).flat_map(|seed| worlds::play(seed).happened) {
        *seen.entry(what).or_default() += usize::from(happened);
    }
    assert!(seen.values().all(|&worlds| worlds >= 10), "{seen:?}");
}
