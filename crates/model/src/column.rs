//! A column of integers that is as narrow as its values allow.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Integers by row. Values are kept as distances from the first one, in the narrowest of
/// none, 8, 16, 32 and 64 bits that has held them all so far: a column of zeros costs nothing
/// a row, launch times of one stage four bytes.
#[derive(Clone, Debug, Default)]
pub struct Column {
    base: i64,
    len: usize,
    distances: Distances,
}

#[derive(Clone, Debug, Default)]
enum Distances {
    #[default]
    Same,
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
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
        match &mut self.distances {
            Distances::Same => {}
            Distances::I8(v) => v.push(distance as i8),
            Distances::I16(v) => v.push(distance as i16),
            Distances::I32(v) => v.push(distance as i32),
            Distances::I64(v) => v.push(distance),
        }
        self.len += 1;
    }

    /// The value of a row; 0 for a row that is not there.
    #[must_use]
    pub fn get(&self, row: usize) -> i64 {
        if row >= self.len {
            return 0;
        }
        let distance = match &self.distances {
            Distances::Same => 0,
            Distances::I8(v) => i64::from(v[row]),
            Distances::I16(v) => i64::from(v[row]),
            Distances::I32(v) => i64::from(v[row]),
            Distances::I64(v) => v[row],
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
        match &mut self.distances {
            Distances::Same => {}
            Distances::I8(v) => v[row] = distance as i8,
            Distances::I16(v) => v[row] = distance as i16,
            Distances::I32(v) => v[row] = distance as i32,
            Distances::I64(v) => v[row] = distance,
        }
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
        fn widened<T: Copy + Into<i64>>(base: i64, distances: &[T]) -> Vec<i64> {
            distances.iter().map(|&distance| base.wrapping_add(distance.into())).collect()
        }
        match &self.distances {
            Distances::Same => vec![self.base; self.len],
            Distances::I8(v) => widened(self.base, v),
            Distances::I16(v) => widened(self.base, v),
            Distances::I32(v) => widened(self.base, v),
            Distances::I64(v) => widened(self.base, v),
        }
    }

    /// Whether every row is zero.
    #[must_use]
    pub fn all_zero(&self) -> bool {
        self.base == 0 && matches!(self.distances, Distances::Same) || self.iter().all(|v| v == 0)
    }

    /// Gives back what was allocated ahead.
    pub fn shrink_to_fit(&mut self) {
        match &mut self.distances {
            Distances::Same => {}
            Distances::I8(v) => v.shrink_to_fit(),
            Distances::I16(v) => v.shrink_to_fit(),
            Distances::I32(v) => v.shrink_to_fit(),
            Distances::I64(v) => v.shrink_to_fit(),
        }
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.distances {
            Distances::Same => 0,
            Distances::I8(v) => v.capacity(),
            Distances::I16(v) => v.capacity() * 2,
            Distances::I32(v) => v.capacity() * 4,
            Distances::I64(v) => v.capacity() * 8,
        }
    }

    fn widen_for(&mut self, distance: i64) {
        let fits = match &self.distances {
            Distances::Same => distance == 0,
            Distances::I8(_) => i8::try_from(distance).is_ok(),
            Distances::I16(_) => i16::try_from(distance).is_ok(),
            Distances::I32(_) => i32::try_from(distance).is_ok(),
            Distances::I64(_) => true,
        };
        if !fits {
            self.widen(distance);
        }
    }

    fn widen(&mut self, distance: i64) {
        let old: Vec<i64> = (0..self.len).map(|row| self.get(row).wrapping_sub(self.base)).collect();
        self.distances = if i8::try_from(distance).is_ok() {
            Distances::I8(old.iter().map(|&d| d as i8).collect())
        } else if i16::try_from(distance).is_ok() {
            Distances::I16(old.iter().map(|&d| d as i16).collect())
        } else if i32::try_from(distance).is_ok() {
            Distances::I32(old.iter().map(|&d| d as i32).collect())
        } else {
            Distances::I64(old)
        };
    }
}

/// By value: two columns may hold the same values in different widths.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Column {}

/// First value, number of rows, and the distances as one byte string, little-endian. The width is
/// the length of that string over the number of rows.
impl Serialize for Column {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bytes = match &self.distances {
            Distances::Same => Vec::new(),
            Distances::I8(v) => v.iter().flat_map(|d| d.to_le_bytes()).collect(),
            Distances::I16(v) => v.iter().flat_map(|d| d.to_le_bytes()).collect(),
            Distances::I32(v) => v.iter().flat_map(|d| d.to_le_bytes()).collect(),
            Distances::I64(v) => v.iter().flat_map(|d| d.to_le_bytes()).collect(),
        };
        (self.base, self.len, Bytes(&bytes)).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (base, len, distances): (i64, usize, Bytes<'de>) = Deserialize::deserialize(from)?;
        let distances = Distances::from_le_bytes(len, distances.0);
        let distances = distances.ok_or_else(|| D::Error::custom("a column with bytes for another number of rows"))?;
        Ok(Self { base, len, distances })
    }
}

impl Distances {
    fn from_le_bytes(len: usize, bytes: &[u8]) -> Option<Self> {
        Some(match bytes.len().checked_div(len).unwrap_or_default() {
            width if width.checked_mul(len) != Some(bytes.len()) => return None,
            0 => Self::Same,
            1 => Self::I8(integers(bytes, i8::from_le_bytes)),
            2 => Self::I16(integers(bytes, i16::from_le_bytes)),
            4 => Self::I32(integers(bytes, i32::from_le_bytes)),
            8 => Self::I64(integers(bytes, i64::from_le_bytes)),
            _ => return None,
        })
    }
}

/// Compiles to one copy.
fn integers<const WIDTH: usize, T>(bytes: &[u8], integer: impl Fn([u8; WIDTH]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| integer(chunk)).collect()
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
    fn a_constant_column_is_free_and_times_take_four_bytes() {
        let mut column: Column = std::iter::repeat_n(0, 10_000).collect();
        assert_eq!(column.heap_bytes(), 0);
        column = (0..10_000).map(|i| 1_795_975_612_432 + i * 50).collect();
        column.shrink_to_fit();
        assert_eq!(column.heap_bytes(), 40_000);
    }
}
