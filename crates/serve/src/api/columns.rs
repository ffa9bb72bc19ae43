//! Many rows for a page to draw, without a parser on its way: little-endian columns.
//!
//! The length of a JSON header (4 bytes), the header, spaces up to a multiple of four, then the
//! columns one after the other, each at a multiple of four. The header has `rows` and of each
//! column `name`, `type` (`u8`, `u16`, `u32` or `f32`) and `offset`, counted from the end of the
//! header. Whole numbers are as narrow as all of a column fit; a column of zeros is left out.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// Media type of the answer.
pub(crate) const KIND: &str = "application/vnd.lakescope.columns";

/// Columns on their way out.
pub(super) struct Columns {
    rows: usize,
    columns: Vec<Value>,
    body: Vec<u8>,
}

impl Columns {
    pub fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new(), body: Vec::new() }
    }

    /// Whole numbers. Values below 0 become 0, those that do not fit 32 bits the largest.
    pub fn whole(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        let values: Vec<u32> = values.map(|value| u32::try_from(value.max(0)).unwrap_or(u32::MAX)).collect();
        match values.iter().max() {
            None | Some(0) => {}
            Some(..=0xff) => self.put(name, "u8", values.iter().map(|value| [*value as u8])),
            Some(..=0xffff) => self.put(name, "u16", values.iter().map(|value| (*value as u16).to_le_bytes())),
            Some(_) => self.put(name, "u32", values.iter().map(|value| value.to_le_bytes())),
        }
    }

    /// Numbers of any size, of which the first seven digits count.
    pub fn rough(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        let values: Vec<f32> = values.map(|value| value as f32).collect();
        if values.iter().any(|value| *value != 0.0) {
            self.put(name, "f32", values.iter().map(|value| value.to_le_bytes()));
        }
    }

    fn put<const N: usize>(&mut self, name: &str, kind: &str, values: impl Iterator<Item = [u8; N]>) {
        self.begin(name, kind);
        self.body.extend(values.flatten());
    }

    fn begin(&mut self, name: &str, kind: &str) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        self.columns.push(json!({ "name": name, "type": kind, "offset": self.body.len() }));
    }

    /// The answer; `more` stands in the header beside the columns.
    pub fn answer(self, mut more: Map<String, Value>) -> Response {
        more.insert("rows".to_owned(), self.rows.into());
        more.insert("columns".to_owned(), self.columns.into());
        let mut header = Value::Object(more).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(4), b' ');
        let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
        let body = [length.to_le_bytes().as_slice(), &header, &self.body].concat();
        ([(header::CONTENT_TYPE, KIND)], body).into_response()
    }
}
