//! Query parameters of a request.

/// The parameters of one request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

/// A parameter that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub name: &'static str,
    pub expected: &'static str,
    pub got: String,
}

impl Params {
    pub fn of(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    /// Adds one behind those that there are.
    pub fn add(&mut self, name: String, value: String) {
        self.0.push((name, value));
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

    /// A value of its own type; `None` when it is not given or empty.
    pub fn parsed<T: std::str::FromStr>(&self, name: &'static str, expected: &'static str) -> Result<Option<T>, Bad> {
        let given = self.get(name).filter(|value| !value.is_empty());
        given.map(|got| got.parse().map_err(|_| Bad { name, expected, got: got.to_owned() })).transpose()
    }

    /// One of some words; the first when it is not given.
    pub fn word<T: Copy>(&self, name: &'static str, of: &[(&str, T)], expected: &'static str) -> Result<T, Bad> {
        let Some(got) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(of[0].1) };
        let found = of.iter().find(|(word, _)| word.eq_ignore_ascii_case(got));
        found.map(|(_, value)| *value).ok_or_else(|| Bad { name, expected, got: got.to_owned() })
    }
}
