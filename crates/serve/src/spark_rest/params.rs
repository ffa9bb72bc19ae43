//! Query parameters as Spark takes them: repeated ones are lists, enums in any case.

use super::errors::Failure;

/// The parameters of one request, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub fn of(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    /// The first value of a parameter, as a servlet gives it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    pub fn number(&self, name: &str, default: usize) -> Result<usize, Failure> {
        match self.get(name) {
            None | Some("") => Ok(default),
            // What is no number has no path in Spark.
            Some(value) => value.parse().map_err(|_| Failure::no_such_path()),
        }
    }

    /// One of some words, in any case; `None` when it is not given.
    pub fn choice<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<Option<T>, Failure> {
        self.choices(name, of).map(|found| found.first().copied())
    }

    /// All of some words that are given, in any case.
    pub fn choices<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<Vec<T>, Failure> {
        let find = |value: &str| of.iter().find(|(word, _)| word.eq_ignore_ascii_case(value)).map(|(_, t)| *t);
        self.all(name).filter(|v| !v.is_empty()).map(|v| find(v).ok_or_else(Failure::no_such_path)).collect()
    }

    /// Quantiles between 0 and 1, by default those of Spark's pages.
    pub fn quantiles(&self, default: &str) -> Result<Vec<f64>, Failure> {
        let text = self.get("quantiles").unwrap_or(default);
        let number = |part: &str| part.parse().map_err(|_| Failure::bad_parameter("quantiles", "double", part));
        text.split(',').map(number).collect()
    }
}
