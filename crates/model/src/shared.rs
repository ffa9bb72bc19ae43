//! Keeps shared what is shared when an application is written in a binary form and read again.
//!
//! Serde writes an `Arc<str>` as often as it is pointed to, and reads it back as as many
//! allocations. Inside [`write_shared`] a text is written as its number in a list that holds each
//! text once; inside [`read_shared`] such a number becomes one more pointer to the list's text.
//! The bytes of columns go one after the other into one buffer, and columns that are read point
//! into it: an application has them by the ten thousand, and memory for each would take longer
//! than all else that reading does. Outside of both, texts and columns are written and read as
//! themselves, which is what JSON wants.
//!
//! Serde gives a field's code no room for such things, so they stand in a thread-local for as long
//! as the closure runs: the closure has to do its work on the thread that calls it. Texts take
//! part by `#[serde(with = "crate::shared")]`; one that was forgotten is only not shared.

use crate::Text;
use foldhash::HashMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::LocalKey;

thread_local! {
    static WRITTEN: RefCell<Option<Written>> = const { RefCell::new(None) };
    static READ: RefCell<Option<Read>> = const { RefCell::new(None) };
}

/// What stands apart from the values that point to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Apart {
    /// Each text once, in the order of their numbers.
    pub texts: Vec<Text>,
    /// The bytes of all columns, in the order in which columns are written.
    pub columns: Vec<u8>,
}

#[derive(Debug, Default)]
struct Written {
    numbers: HashMap<Text, u32>,
    apart: Apart,
}

#[derive(Debug)]
struct Read {
    texts: Vec<Text>,
    columns: Arc<Vec<u8>>,
    /// Bytes of columns that were read.
    taken: usize,
}

impl Written {
    fn number(&mut self, text: &Text) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.apart.texts.len() as u32;
        self.numbers.insert(text.clone(), number);
        self.apart.texts.push(text.clone());
        number
    }
}

/// Does `work`, which writes values of this crate in a binary form, and gives back what stands
/// apart from what it wrote.
pub fn write_shared<R>(work: impl FnOnce() -> R) -> (R, Apart) {
    let list = Lent::of(&WRITTEN, Written::default());
    let done = work();
    (done, list.back().unwrap_or_default().apart)
}

/// Does `work`, which reads what was written inside [`write_shared`], with what stood apart there.
pub fn read_shared<R>(apart: Apart, work: impl FnOnce() -> R) -> R {
    let Apart { texts, columns } = apart;
    let _list = Lent::of(&READ, Read { texts, columns: Arc::new(columns), taken: 0 });
    work()
}

/// Puts the bytes of a column apart; whether there is room for it.
pub(crate) fn put_apart(bytes: &[u8]) -> bool {
    WRITTEN.with_borrow_mut(|list| {
        let list = list.as_mut().map(|list| list.apart.columns.extend_from_slice(bytes));
        list.is_some()
    })
}

/// The buffer with the next so many bytes of columns, and where they begin; `None` when there are
/// not as many.
pub(crate) fn take_apart(bytes: usize) -> Option<(Arc<Vec<u8>>, usize)> {
    READ.with_borrow_mut(|list| {
        let list = list.as_mut()?;
        let start = list.taken;
        list.taken = start.checked_add(bytes).filter(|end| *end <= list.columns.len())?;
        Some((Arc::clone(&list.columns), start))
    })
}

/// Whether columns and texts that are read stand apart.
pub(crate) fn reads_apart() -> bool {
    READ.with_borrow(Option::is_some)
}

/// What a thread-local holds for a while; what it held before comes back, after a panic too.
struct Lent<T: 'static> {
    place: &'static LocalKey<RefCell<Option<T>>>,
    before: Option<T>,
}

impl<T> Lent<T> {
    fn of(place: &'static LocalKey<RefCell<Option<T>>>, value: T) -> Self {
        Self { place, before: place.replace(Some(value)) }
    }

    fn back(self) -> Option<T> {
        self.place.take()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        self.place.replace(self.before.take());
    }
}

pub(crate) fn serialize<T: Shared, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.write(to)
}

pub(crate) fn deserialize<'de, T: Shared, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::read(from)
}

/// A text, or something that holds texts.
pub(crate) trait Shared: Sized {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

impl Shared for Text {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let number = WRITTEN.with_borrow_mut(|list| list.as_mut().map(|list| list.number(self)));
        match number {
            Some(number) => to.serialize_u32(number),
            None => to.serialize_str(self),
        }
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if !reads_apart() {
            return Ok(String::deserialize(from)?.into());
        }
        let number = u32::deserialize(from)? as usize;
        let text = READ.with_borrow(|list| list.as_ref()?.texts.get(number).cloned());
        text.ok_or_else(|| D::Error::custom("a text that is not in the list"))
    }
}

/// Lends serde's traits to a value behind a reference.
struct Out<'a, T>(&'a T);

impl<T: Shared> Serialize for Out<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

/// Lends serde's traits to a value that is read.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct In<T>(T);

impl<'de, T: Shared> Deserialize<'de> for In<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Self)
    }
}

impl<T: Shared> Shared for Option<T> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Out).serialize(to)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Option::<In<T>>::deserialize(from)?.map(|item| item.0))
    }
}

impl<T: Shared> Shared for Vec<T> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(Out))
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Vec::<In<T>>::deserialize(from)?.into_iter().map(|item| item.0).collect())
    }
}

impl<A: Shared, B: Shared> Shared for (A, B) {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (Out(&self.0), Out(&self.1)).serialize(to)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (In(first), In(second)) = Deserialize::deserialize(from)?;
        Ok((first, second))
    }
}

impl<K: Shared + Ord, V: Shared> Shared for BTreeMap<K, V> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(key, value)| (Out(key), Out(value))))
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pairs = BTreeMap::<In<K>, In<V>>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(key, value)| (key.0, value.0)).collect())
    }
}

macro_rules! as_it_is {
    ($($number:ty),*) => {$(
        impl Shared for $number {
            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.serialize(to)
            }

            fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::deserialize(from)
            }
        }
    )*};
}

as_it_is!(u32, u64, i64, f64);
