//! The details below the outline of a formatted plan, put back into one line a node.

use super::build::Raw;
use super::kind::{Kind, kind};
use super::list::{cut_at, first_number, names};
use super::operator::arguments;
use std::collections::BTreeMap;

/// A block `(3) Filter [codegen id : 1]` with its fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Name in the title.
    pub(crate) title: String,
    codegen: Option<u32>,
    reuses: Option<u32>,
    /// Fields, in their order; a line without a key has an empty one.
    fields: Vec<(String, String)>,
}

/// Blocks by operator number.
pub(crate) type Blocks = BTreeMap<u32, Block>;

/// Number and title of a block's first line.
pub(crate) fn title(line: &str) -> Option<(u32, &str)> {
    let (digits, rest) = line.strip_prefix('(')?.split_once(") ")?;
    let named = rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '*' || c == '!');
    Some((digits.parse().ok()?, rest.trim())).filter(|_| named)
}

/// Reads the blocks among these lines.
pub(crate) fn blocks(lines: &[&str]) -> Blocks {
    let mut blocks = Blocks::new();
    let mut current = None;
    for line in lines {
        if let Some((number, text)) = title(line) {
            current = Some(number);
            blocks.insert(number, titled(text));
        } else if ends_blocks(line) {
            current = None;
        } else if let Some(block) = current.and_then(|n| blocks.get_mut(&n)) {
            block.line(line);
        }
    }
    blocks
}

fn ends_blocks(line: &str) -> bool {
    line.starts_with("Subquery:") || line.starts_with("Subplan:") || line.starts_with("=====")
}

fn titled(text: &str) -> Block {
    let mut block = Block { title: text.to_owned(), ..Block::default() };
    for (label, target) in [(" [codegen id : ", &mut block.codegen), (" [Reuses operator id: ", &mut block.reuses)] {
        if let Some((name, number)) = text.split_once(label) {
            *target = first_number(number).and_then(|n| u32::try_from(n).ok());
            block.title = name.trim().to_owned();
        }
    }
    block
}

impl Block {
    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        match (field(line), self.fields.last_mut()) {
            (Some((key, value)), _) => self.fields.push((key.to_owned(), value.to_owned())),
            (None, Some((key, value))) if !key.is_empty() => {
                value.push('\n');
                value.push_str(line);
            }
            (None, _) => self.fields.push((String::new(), line.trim().to_owned())),
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Gives a node of the outline what its block says.
    pub(crate) fn fill(&self, raw: &mut Raw) {
        raw.codegen = raw.codegen.or(self.codegen);
        raw.reuses_number = self.reuses;
        if let Some(output) = self.get("Output") {
            raw.output = names(output);
        }
        let words = arguments(&raw.name, &raw.detail).to_owned();
        raw.detail = match kind(&raw.name) {
            Some(Kind::Scan) => self.scan(&raw.name),
            Some(Kind::Filter) => self.with(&raw.name, "Condition", &raw.detail),
            Some(Kind::Project) if self.get("Arguments").is_none() => self.with(&raw.name, "Output", &raw.name),
            _ if self.get("Keys").is_some() || self.get("Functions").is_some() => self.aggregate(&raw.name),
            _ if self.get("Join condition").is_some() => self.join(&raw.name, &words),
            _ => self.with(&raw.name, "Arguments", &raw.detail),
        };
    }

    fn with(&self, name: &str, key: &str, otherwise: &str) -> String {
        let first = cut_at(name, &[' ']).0;
        let first = if name.starts_with("Execute ") { name } else { first };
        self.get(key).map_or(otherwise.to_owned(), |value| format!("{first} {value}"))
    }

    /// Spark leaves a file scan's empty fields out here, so that absence means empty.
    fn scan(&self, name: &str) -> String {
        let mut text = format!("{name} {}", self.get("Output").unwrap_or_default());
        let mut separator = " ";
        for (key, value) in self.fields.iter().filter(|(key, _)| key != "Output" && key != "Input") {
            let field = if key.is_empty() { value.clone() } else { format!("{key}: {value}") };
            text.push_str(separator);
            text.push_str(&field);
            separator = ", ";
        }
        if self.get("Location").is_some() {
            for key in ["PartitionFilters", "PushedFilters"] {
                let instead = key == "PushedFilters" && self.get("RequiredDataFilters").is_some();
                if self.get(key).is_none() && !instead {
                    text.push_str(&format!(", {key}: []"));
                }
            }
        }
        text
    }

    fn aggregate(&self, name: &str) -> String {
        let [keys, functions] = ["Keys", "Functions"].map(|key| self.get(key).unwrap_or("[]"));
        format!("{name}(keys={keys}, functions={functions})")
    }

    /// The outline has the join type before 3.3 and the build side; the block has the rest.
    fn join(&self, name: &str, words: &str) -> String {
        let words: Vec<&str> = words.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        let is_side = |word: &&&str| word.starts_with("Build");
        let kind = self.get("Join type").or_else(|| words.iter().find(|w| !is_side(w)).copied());
        let side = words.iter().find(is_side).copied();
        let condition = self.get("Join condition").filter(|c| *c != "None");
        let parts = [self.get("Left keys"), self.get("Right keys"), kind, side, condition];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        format!("{name} {}", parts.join(", "))
    }
}

/// `Output [2]: […]`, `Condition : …`, `Join type: Inner`: key and value.
fn field(line: &str) -> Option<(&str, &str)> {
    let colon = line.find(':')?;
    let (key, value) = (&line[..colon], &line[colon + 1..]);
    if !(value.is_empty() || value.starts_with(' ')) || !key.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let key = key.trim_end();
    let key = key.split_once(" [").filter(|(_, n)| n.ends_with(']')).map_or(key, |(name, _)| name);
    let word = |c: char| c.is_ascii_alphanumeric() || c == ' ' || c == '_';
    (key.len() <= 40 && key.chars().all(word)).then(|| (key, value.trim()))
}
