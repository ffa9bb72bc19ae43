//! Many rows for a page to draw, without a parser on its way: little-endian columns.
//!
//! The length of a JSON header (4 bytes), the header, spaces up to a multiple of four, then the
//! columns one after the other, each at a multiple of four. The header has `rows` and of each
//! column `name`, `type` (`u8`, `u32` or `f32`) and `offset`, counted from the end of the header.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// Media type of the answer.
pub(super) const KIND: &str = "application/vnd.lakescope.columns";

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

    pub fn u8(&mut self, name: &str, values: impl Iterator<Item = u8>) {
        self.begin(name, "u8");
        self.body.extend(values);
    }

    /// Values below 0 become 0, those that do not fit the largest.
    pub fn u32(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.begin(name, "u32");
        for value in values {
            let value = u32::try_from(value.max(0)).unwrap_or(u32::MAX);
            self.body.extend(value.to_le_bytes());
        }
    }

    pub fn f32(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.begin(name, "f32");
        for value in values {
            self.body.extend((value as f32).to_le_bytes());
        }
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
