//! Tokens of pages, and arrays that are given a hundred items at a time.

use super::ApiError;
use serde_json::{Map, Value};
use store::jobs::From;

/// Items of an array on one page.
const ITEMS: usize = 100;

/// Items of the longest array.
const MOST_ITEMS: usize = 1 << 20;

/// A place in a list of runs as a token.
pub(super) fn token(place: From) -> String {
    match place {
        From::After(start_ms, id) => format!("n.{start_ms}.{id}"),
        From::Before(start_ms, id) => format!("p.{start_ms}.{id}"),
    }
}

/// The place of a token.
pub(super) fn place(token: &str) -> Result<From, ApiError> {
    let numbers = |rest: &str| {
        let (start_ms, id) = rest.split_once('.')?;
        Some((start_ms.parse().ok()?, id.parse().ok()?))
    };
    let place = match token.split_once('.') {
        Some(("n", rest)) => numbers(rest).map(|(start_ms, id)| From::After(start_ms, id)),
        Some(("p", rest)) => numbers(rest).map(|(start_ms, id)| From::Before(start_ms, id)),
        _ => None,
    };
    place.ok_or_else(|| wrong(token))
}

pub(super) fn wrong(token: &str) -> ApiError {
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
        for place_in in [From::After(1_795_990_000_000, 7), From::Before(0, i64::MAX)] {
            assert_eq!(place(&token(place_in)), Ok(place_in));
        }
        for wrong in ["", "n", "n.1", "x.1.2", "n.1.2.3", "n.a.b"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
        assert_eq!(item(next(100).as_str()), Ok(200));
        assert!(item(Some("100")).is_err() && item(Some("i.18446744073709551615")).is_err());
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
