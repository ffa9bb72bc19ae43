//! Query parameters as Spark takes them: repeated ones are lists, enums in any case.

use super::errors::Failure;
use crate::params::Params;

impl Params {
    pub(super) fn number(&self, name: &str, default: usize) -> Result<usize, Failure> {
        match self.get(name) {
            None | Some("") => Ok(default),
            // What is no number has no path in Spark.
            Some(value) => value.parse().map_err(|_| Failure::no_such_path()),
        }
    }

    /// One of some words, in any case; `None` when it is not given.
    pub(super) fn choice<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<Option<T>, Failure> {
        self.choices(name, of).map(|found| found.first().copied())
    }

    /// All of some words that are given, in any case.
    pub(super) fn choices<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<Vec<T>, Failure> {
        let find = |value: &str| of.iter().find(|(word, _)| word.eq_ignore_ascii_case(value)).map(|(_, t)| *t);
        self.all(name).filter(|v| !v.is_empty()).map(|v| find(v).ok_or_else(Failure::no_such_path)).collect()
    }

    /// Quantiles between 0 and 1, by default those of Spark's pages.
    pub(super) fn quantiles(&self, default: &str) -> Result<Vec<f64>, Failure> {
        let text = self.get("quantiles").unwrap_or(default);
        let number = |part: &str| part.parse().map_err(|_| Failure::bad_parameter("quantiles", "double", part));
        text.split(',').map(number).collect()
    }
}
