//! A column of integers that is as narrow as its values allow.

use crate::shared;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Integers by row. Values are kept as distances from the first one, in the narrowest of
/// none, 8, 16, 32 and 64 bits that has held them all so far: a column of zeros costs nothing
/// a row, launch times of one stage four bytes.
#[derive(Clone, Debug, Default)]
pub struct Column {
    base: i64,
    len: usize,
    width: Width,
    rows: Rows,
}

/// Bytes of a distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Width {
    /// All rows are the first one.
    #[default]
    Zero = 0,
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// Distances one after the other, little-endian.
#[derive(Clone, Debug)]
enum Rows {
    Own(Vec<u8>),
    /// A part of a buffer that holds many columns, from this byte on.
    Shared(Arc<Vec<u8>>, usize),
}

impl Default for Rows {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Width {
    fn of(bytes: usize) -> Option<Self> {
        let all = [Self::Zero, Self::One, Self::Two, Self::Four, Self::Eight];
        all.into_iter().find(|width| *width as usize == bytes)
    }

    /// The narrowest that holds a distance.
    fn for_distance(distance: i64) -> Self {
        if distance == 0 {
            Self::Zero
        } else if i8::try_from(distance).is_ok() {
            Self::One
        } else if i16::try_from(distance).is_ok() {
            Self::Two
        } else if i32::try_from(distance).is_ok() {
            Self::Four
        } else {
            Self::Eight
        }
    }
}

/// The integer at a place in a list of such; 0 beyond its end.
fn integer<const WIDTH: usize, T: Into<i64>>(bytes: &[u8], row: usize, from: impl Fn([u8; WIDTH]) -> T) -> i64 {
    bytes.as_chunks().0.get(row).map_or(0, |&chunk| from(chunk).into())
}

impl Column {
    /// Adds a row.
    pub fn push(&mut self, value: i64) {
        if self.len == 0 {
            self.base = value;
        }
        // Wrapping: a distance that does not fit 64 bits comes back whole when it is added.
        let distance = value.wrapping_sub(self.base);
        self.widen_for(distance);
        let width = self.width;
        self.change(|rows| match width {
            Width::Zero => {}
            Width::One => rows.push(distance as u8),
            Width::Two => rows.extend_from_slice(&(distance as i16).to_le_bytes()),
            Width::Four => rows.extend_from_slice(&(distance as i32).to_le_bytes()),
            Width::Eight => rows.extend_from_slice(&distance.to_le_bytes()),
        });
        self.len += 1;
    }

    /// The value of a row; 0 for a row that is not there.
    #[must_use]
    pub fn get(&self, row: usize) -> i64 {
        if row >= self.len {
            return 0;
        }
        let bytes = self.bytes();
        let distance = match self.width {
            Width::Zero => 0,
            Width::One => integer(bytes, row, i8::from_le_bytes),
            Width::Two => integer(bytes, row, i16::from_le_bytes),
            Width::Four => integer(bytes, row, i32::from_le_bytes),
            Width::Eight => integer(bytes, row, i64::from_le_bytes),
        };
        self.base.wrapping_add(distance)
    }

    /// Replaces the value of a row that exists.
    pub fn set(&mut self, row: usize, value: i64) {
        if row >= self.len {
            return;
        }
        let distance = value.wrapping_sub(self.base);
        self.widen_for(distance);
        let width = self.width as usize;
        self.change(|rows| rows[row * width..][..width].copy_from_slice(&distance.to_le_bytes()[..width]));
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values in row order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len).map(|row| self.get(row))
    }

    /// The values in row order, the width looked at once and not for every row.
    #[must_use]
    pub fn to_vec(&self) -> Vec<i64> {
        let (base, bytes) = (self.base, self.bytes());
        match self.width {
            Width::Zero => vec![base; self.len],
            Width::One => widened(base, bytes, i8::from_le_bytes),
            Width::Two => widened(base, bytes, i16::from_le_bytes),
            Width::Four => widened(base, bytes, i32::from_le_bytes),
            Width::Eight => widened(base, bytes, i64::from_le_bytes),
        }
    }

    /// Whether every row is zero.
    #[must_use]
    pub fn all_zero(&self) -> bool {
        self.base == 0 && self.width == Width::Zero || self.iter().all(|v| v == 0)
    }

    /// Gives back what was allocated ahead.
    pub fn shrink_to_fit(&mut self) {
        if let Rows::Own(bytes) = &mut self.rows {
            bytes.shrink_to_fit();
        }
    }

    /// Bytes on the heap; of a buffer with other columns, those of this one.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.rows {
            Rows::Own(bytes) => bytes.capacity(),
            Rows::Shared(..) => self.bytes().len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.rows {
            Rows::Own(bytes) => bytes,
            Rows::Shared(all, start) => all.get(*start..start + self.len * self.width as usize).unwrap_or_default(),
        }
    }

    /// Changes the rows, in a buffer of their own from now on.
    fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        match &mut self.rows {
            Rows::Own(rows) => change(rows),
            Rows::Shared(..) => {
                let mut rows = self.bytes().to_vec();
                change(&mut rows);
                self.rows = Rows::Own(rows);
            }
        }
    }

    fn widen_for(&mut self, distance: i64) {
        let width = Width::for_distance(distance);
        if width as usize > self.width as usize {
            let old = self.to_vec();
            let rows = old.into_iter().flat_map(|value| {
                let distance = value.wrapping_sub(self.base).to_le_bytes();
                distance.into_iter().take(width as usize)
            });
            self.rows = Rows::Own(rows.collect());
            self.width = width;
        }
    }
}

fn widened<const WIDTH: usize, T: Into<i64>>(base: i64, bytes: &[u8], from: impl Fn([u8; WIDTH]) -> T) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|&chunk| base.wrapping_add(from(chunk).into())).collect()
}

/// By value: two columns may hold the same values in different widths.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Column {}

/// First value, number of rows, and the distances as one byte string, little-endian, whose length
/// over the number of rows is their width. Where columns stand apart, the width stands there
/// instead.
impl Serialize for Column {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match shared::put_apart(self.bytes()) {
            true => (self.base, self.len, self.width as u8).serialize(to),
            false => (self.base, self.len, Bytes(self.bytes())).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("a column with bytes for another number of rows");
        let (base, len, bytes, rows);
        if shared::reads_apart() {
            let width: u8;
            (base, len, width) = Deserialize::deserialize(from)?;
            bytes = usize::from(width).checked_mul(len).ok_or_else(wrong)?;
            let (all, start) = shared::take_apart(bytes).ok_or_else(wrong)?;
            rows = Rows::Shared(all, start);
        } else {
            let own: Bytes<'de>;
            (base, len, own) = Deserialize::deserialize(from)?;
            bytes = own.0.len();
            rows = Rows::Own(own.0.to_vec());
        }
        let width = bytes.checked_div(len).unwrap_or_default();
        let width = Width::of(width).filter(|width| *width as usize * len == bytes).ok_or_else(wrong)?;
        Ok(Self { base, len, width, rows })
    }
}

/// A byte string, which serde would take for a sequence of numbers.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Bytes<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes that outlive the reading")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Bytes(bytes))
            }
        }
        from.deserialize_bytes(Borrowed)
    }
}

impl FromIterator<i64> for Column {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut column = Self::default();
        values.into_iter().for_each(|v| column.push(v));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_back_what_was_put_in(values in proptest::collection::vec(
            prop_oneof![Just(0i64), -200i64..200, any::<i64>(), 1_700_000_000_000i64..1_700_000_100_000], 0..200),
            change in any::<(usize, i64)>())
        {
            let mut column: Column = values.iter().copied().collect();
            prop_assert_eq!(column.iter().collect::<Vec<_>>(), values.clone());
            prop_assert_eq!(column.to_vec(), values.clone());
            let mut changed = values;
            if !changed.is_empty() {
                let row = change.0 % changed.len();
                changed[row] = change.1;
                column.set(row, change.1);
            }
            prop_assert_eq!(column.iter().collect::<Vec<_>>(), changed);
        }
    }

    #[test]
    fn a_column_in_a_buffer_with_others_can_be_changed_alone() {
        let columns: Vec<Column> =
            [vec![5; 3], vec![1, 2, 300], vec![7, 1 << 40]].into_iter().map(Column::from_iter).collect();
        let (json, apart) = shared::write_shared(|| serde_json::to_string(&columns).unwrap());
        assert_eq!(json, "[[5,3,0],[1,3,2],[7,2,8]]");
        assert_eq!(apart.columns.len(), 3 * 2 + 2 * 8);
        let read = || shared::read_shared(apart.clone(), || serde_json::from_str::<Vec<Column>>(&json).unwrap());
        assert_eq!(read(), columns);
        let mut changed = read();
        changed[1].set(0, -9);
        changed[1].push(1 << 20);
        changed[0].push(6);
        assert_eq!(changed[1].to_vec(), [-9, 2, 300, 1 << 20]);
        assert_eq!(changed[0].to_vec(), [5, 5, 5, 6]);
        assert_eq!(changed[2], columns[2]);
        let short = shared::Apart { columns: apart.columns[..20].to_vec(), ..apart };
        assert!(shared::read_shared(short, || serde_json::from_str::<Vec<Column>>(&json)).is_err());
    }

    #[test]
    fn a_constant_column_is_free_and_times_take_four_bytes() {
        let mut column: Column = std::iter::repeat_n(0, 10_000).collect();
        assert_eq!(column.heap_bytes(), 0);
        column = (0..10_000).map(|i| 1_795_975_612_432 + i * 50).collect();
        column.shrink_to_fit();
        assert_eq!(column.heap_bytes(), 40_000);
    }
}
