//! The numbers that a field allows.

/// Numbers from 0 to 255, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Values([u64; 4]);

impl Values {
    pub(super) const fn insert(&mut self, value: u8) {
        self.0[value as usize / 64] |= 1 << (value % 64);
    }

    pub(super) fn contains<N: TryInto<u8>>(&self, value: N) -> bool {
        value.try_into().is_ok_and(|value| self.0[usize::from(value) / 64] & (1 << (value % 64)) != 0)
    }

    /// The least number from this one on.
    pub(super) fn next<N: TryInto<u8> + TryFrom<u8>>(&self, from: N) -> Option<N> {
        let from: u8 = from.try_into().ok()?;
        let word = usize::from(from) / 64;
        let rest = self.0[word] & (u64::MAX << (from % 64));
        let words = std::iter::once(rest).chain(self.0[word + 1..].iter().copied());
        let (word, bits) = (word..).zip(words).find(|(_, bits)| *bits != 0)?;
        let value = word * 64 + bits.trailing_zeros() as usize;
        u8::try_from(value).ok()?.try_into().ok()
    }

    /// The least number; 0 if there's none, which no field that has been read is.
    pub(super) fn first(&self) -> i8 {
        self.next(0).unwrap_or(0)
    }
}
