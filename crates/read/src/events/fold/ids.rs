//! Sets of task ids.

use foldhash::HashMap;

/// Task ids, mostly dense: 64 of them in one entry.
#[derive(Debug, Default)]
pub(super) struct IdSet {
    words: HashMap<i64, u64>,
    len: u64,
}

impl IdSet {
    /// Adds an id; `false` when it was there.
    pub fn insert(&mut self, id: i64) -> bool {
        let word = self.words.entry(id >> 6).or_default();
        let bit = 1 << (id & 63);
        let new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(new);
        new
    }

    pub fn contains(&self, id: i64) -> bool {
        self.words.get(&(id >> 6)).is_some_and(|word| word & (1 << (id & 63)) != 0)
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// How many ids are not in `other`.
    pub fn missing_in(&self, other: &Self) -> u64 {
        let missing = |(key, word): (&i64, &u64)| {
            u64::from((word & !other.words.get(key).copied().unwrap_or_default()).count_ones())
        };
        self.words.iter().map(missing).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::IdSet;

    #[test]
    fn ids_of_any_size_stand_once() {
        let mut set = IdSet::default();
        for id in [0, 63, 64, i64::MAX, -1, i64::MIN] {
            assert!(set.insert(id) && !set.insert(id) && set.contains(id), "{id}");
        }
        assert!(!set.contains(1));
        let mut other = IdSet::default();
        other.insert(64);
        assert_eq!((set.len(), set.missing_in(&other), other.missing_in(&set)), (6, 5, 0));
    }
}
