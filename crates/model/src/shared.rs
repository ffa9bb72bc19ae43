//! Keeps shared texts shared when an application is written in a binary form and read again.
//!
//! Serde writes an `Arc<str>` as often as it is pointed to, and reads it back as as many
//! allocations. Inside [`write_texts`] a text is written as its number in a list that holds each
//! text once; inside [`read_texts`] such a number becomes one more pointer to the list's text.
//! Outside of both a text is written and read as itself, which is what JSON wants.
//!
//! Serde gives a field's code no room for such a list, so it stands in a thread-local for as long
//! as the closure runs: the closure has to do its work on the thread that calls it. Fields take
//! part by `#[serde(with = "crate::shared")]`; one that was forgotten is only not shared.

use crate::Text;
use foldhash::HashMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread::LocalKey;

thread_local! {
    static WRITTEN: RefCell<Option<Written>> = const { RefCell::new(None) };
    static READ: RefCell<Option<Vec<Text>>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
struct Written {
    numbers: HashMap<Text, u32>,
    texts: Vec<Text>,
}

impl Written {
    fn number(&mut self, text: &Text) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.clone(), number);
        self.texts.push(text.clone());
        number
    }
}

/// Does `work`, which writes values of this crate in a binary form, and gives back the texts that
/// stand in it as numbers, in the order of the numbers.
pub fn write_texts<R>(work: impl FnOnce() -> R) -> (R, Vec<Text>) {
    let list = Lent::of(&WRITTEN, Written::default());
    let done = work();
    (done, list.back().unwrap_or_default().texts)
}

/// Does `work`, which reads what was written inside [`write_texts`], with the texts from there.
pub fn read_texts<R>(texts: Vec<Text>, work: impl FnOnce() -> R) -> R {
    let _list = Lent::of(&READ, texts);
    work()
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
        if READ.with_borrow(Option::is_none) {
            return Ok(String::deserialize(from)?.into());
        }
        let number = u32::deserialize(from)? as usize;
        let text = READ.with_borrow(|list| list.as_ref()?.get(number).cloned());
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
