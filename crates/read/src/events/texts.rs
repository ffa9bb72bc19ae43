//! Strings that occur often, kept once.

use foldhash::{HashMap, HashSet};
use model::{Label, Text};

/// Hands out one shared allocation for equal texts.
#[derive(Debug, Default)]
pub(super) struct Interner {
    texts: HashSet<Text>,
    bytes: usize,
}

impl Interner {
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new = Text::from(text);
        self.bytes += text.len() + OVERHEAD_BYTES;
        self.texts.insert(new.clone());
        new
    }

    /// A label; an empty text is no allocation at all.
    pub fn label(&mut self, text: &str) -> Label {
        match text {
            "" => Label::default(),
            _ => Label(Some(self.text(text))),
        }
    }

    pub fn option(&mut self, text: Option<&str>) -> Option<Text> {
        text.map(|t| self.text(t))
    }

    /// Bytes of all texts that were handed out.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Reference counts, and the place in the set.
const OVERHEAD_BYTES: usize = 16 + 24;

/// Texts of one batch by a small number, so that events of the batch stay small.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl TextTable {
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub fn into_texts(self) -> Vec<Box<str>> {
        self.texts
    }
}
