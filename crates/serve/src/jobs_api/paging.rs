//! Tokens of pages, and arrays that are given a hundred items at a time.

use super::ApiError;
use serde_json::{Map, Value};
use store::jobs::Place;

/// Items of an array on one page.
const ITEMS: usize = 100;

/// Items of the longest array.
const MOST_ITEMS: usize = 1 << 20;

/// What the items of a list are ordered by.
pub(super) trait Key: Copy {
    fn write(self) -> String;
    fn read(text: &str) -> Option<Self>;
}

impl Key for i64 {
    fn write(self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Key for (i64, i64) {
    fn write(self) -> String {
        format!("{}.{}", self.0, self.1)
    }

    fn read(text: &str) -> Option<Self> {
        let (first, second) = text.split_once('.')?;
        Some((first.parse().ok()?, second.parse().ok()?))
    }
}

/// The place of a token; none: the first page.
pub(super) fn place<K: Key>(token: Option<&str>) -> Result<Option<Place<K>>, ApiError> {
    let place = |token: &str| match token.split_once('.')? {
        ("n", key) => K::read(key).map(Place::After),
        ("p", key) => K::read(key).map(Place::Before),
        _ => None,
    };
    token.map(|token| place(token).ok_or_else(|| wrong(token))).transpose()
}

/// A page of a list, with the tokens of those next to it.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub items: Vec<T>,
    next: Option<String>,
    prev: Option<String>,
}

impl<T> Page<T> {
    /// From one item more than fits, if there are so many, read from that place on.
    pub fn of<K: Key>(mut items: Vec<T>, limit: usize, from: Option<Place<K>>, key: impl Fn(&T) -> K) -> Self {
        let is_back = matches!(from, Some(Place::Before(_)));
        let more = items.len() > limit;
        if more {
            // It stands at the end that is walked to.
            items.remove(if is_back { 0 } else { items.len() - 1 });
        }
        let (has_next, has_prev) = if is_back { (true, more) } else { (more, from.is_some()) };
        let token = |item: Option<&T>, way: &str| item.map(|item| format!("{way}.{}", key(item).write()));
        let next = token(items.last().filter(|_| has_next), "n");
        let prev = token(items.first().filter(|_| has_prev), "p");
        Self { items, next, prev }
    }

    /// The answer, its items under this name; a list that is empty is left out.
    pub fn answer(self, name: &str, items: Vec<Value>) -> Value {
        let mut answer = Map::new();
        answer.insert("has_more".to_owned(), self.next.is_some().into());
        answer.extend(self.next.map(|token| ("next_page_token".to_owned(), token.into())));
        answer.extend(self.prev.map(|token| ("prev_page_token".to_owned(), token.into())));
        if !items.is_empty() {
            answer.insert(name.to_owned(), items.into());
        }
        answer.into()
    }
}

fn wrong(token: &str) -> ApiError {
    ApiError::invalid(format!("page_token {token:?} is none of this server; begin again without one"))
}

/// Cuts arrays to the page that begins at the token's item; says where the next one begins.
pub(super) fn cut(object: &mut Map<String, Value>, arrays: &[&str], from: usize) -> bool {
    let mut more = false;
    for name in arrays {
        let Some(Value::Array(items)) = object.get_mut(*name) else { continue };
        more |= items.len() > from + ITEMS;
        items.truncate(from + ITEMS);
        items.drain(..from.min(items.len()));
    }
    more
}

/// The item that a token of [`cut`] stands for.
pub(super) fn item(token: Option<&str>) -> Result<usize, ApiError> {
    let item = |token: &str| token.strip_prefix("i.")?.parse().ok().filter(|at| *at <= MOST_ITEMS);
    token.map_or(Ok(0), |token| item(token).ok_or_else(|| wrong(token)))
}

/// The token of the page behind the one that begins at an item.
pub(super) fn next(from: usize) -> Value {
    format!("i.{}", from + ITEMS).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_lead_back_and_others_are_refused() {
        let runs = [Place::After((1_795_990_000_000, 7)), Place::Before((0, i64::MAX))];
        for (token, wanted) in ["n.1795990000000.7", "p.0.9223372036854775807"].into_iter().zip(runs) {
            assert_eq!(place(Some(token)), Ok(Some(wanted)));
        }
        assert_eq!(place(Some("p.7")), Ok(Some(Place::Before(7_i64))));
        assert_eq!(place::<i64>(None), Ok(None));
        for wrong in ["", "n", "n.1", "x.1.2", "n.1.2.3", "n.a.b"] {
            assert!(place::<(i64, i64)>(Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(item(next(100).as_str()), Ok(200));
        assert!(item(Some("100")).is_err() && item(Some("i.18446744073709551615")).is_err());
    }

    #[test]
    fn pages_lead_on_and_back() {
        let tokens = |items: &[i64], from| {
            let page = Page::of(items.to_vec(), 2, from, |item| *item);
            (page.items, page.next.unwrap_or_default(), page.prev.unwrap_or_default())
        };
        assert_eq!(tokens(&[9, 8, 7], None), (vec![9, 8], "n.8".to_owned(), String::new()));
        assert_eq!(tokens(&[7, 6], Some(Place::After(8))), (vec![7, 6], String::new(), "p.7".to_owned()));
        assert_eq!(tokens(&[9, 8, 7], Some(Place::Before(6))), (vec![8, 7], "n.7".to_owned(), "p.8".to_owned()));
        assert_eq!(tokens(&[9, 8], Some(Place::Before(7))), (vec![9, 8], "n.8".to_owned(), String::new()));
        assert_eq!(tokens(&[], None), (vec![], String::new(), String::new()));
    }

    #[test]
    fn arrays_come_a_hundred_at_a_time() {
        let Value::Object(mut object) = json!({ "a": (0..250).collect::<Vec<_>>(), "b": [1] }) else { panic!() };
        let mut second = object.clone();
        assert!(cut(&mut object, &["a", "b", "c"], 0));
        assert_eq!((object["a"].as_array().unwrap().len(), &object["b"]), (100, &json!([1])));
        assert!(!cut(&mut second, &["a", "b"], 200));
        assert_eq!((second["a"].as_array().unwrap().len(), &second["b"]), (50, &json!([])));
    }
}
