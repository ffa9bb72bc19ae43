//! YAML and JSON as a tree in which every value knows its place.
//!
//! JSON is read as the YAML that it is. Anchors, aliases and merge keys (`<<`) are resolved; a plain
//! scalar is what the core schema of YAML 1.2 says, so `yes` and `2026-11-30` are texts.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Deepest nesting.
const DEEPEST: usize = 100;
/// Most values of a file, those of aliases counted each time.
const MOST_VALUES: usize = 500_000;

/// A file.
#[derive(Debug)]
pub struct Source {
    /// Its name, as it was given.
    pub name: String,
    /// Folder that relative paths in it start from, absolute.
    pub folder: PathBuf,
    /// What stands in it.
    pub text: String,
}

/// A place in a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which file.
    pub source: Rc<Source>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Offset in characters, from 0.
    index: usize,
    /// How far it goes, characters.
    pub length: usize,
}

impl Source {
    /// What was given on the command line, as if it stood in a file.
    pub fn given(name: String, text: &str) -> Rc<Self> {
        let folder = std::env::current_dir().unwrap_or_default();
        Rc::new(Self { name, folder, text: text.to_owned() })
    }
}

impl Place {
    /// The beginning of a file.
    pub fn start_of(source: &Rc<Source>) -> Self {
        Self { source: Rc::clone(source), line: 1, column: 1, index: 0, length: 0 }
    }

    fn of(source: &Rc<Source>, span: Span) -> Self {
        let Span { start, end } = span;
        let length = end.index().saturating_sub(start.index());
        let (line, column) = (start.line().max(1), start.col() + 1);
        Self { source: Rc::clone(source), line, column, index: start.index(), length }
    }

    /// Whether both begin at the same character.
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.source, &other.source) && self.index == other.index
    }

    /// The first place of a text within this one; this one if it is not there as it stands.
    pub fn of_part(&self, part: &str) -> Self {
        let start = |chars: usize| self.source.text.char_indices().nth(chars).map(|(at, _)| at);
        let from = start(self.index).unwrap_or(self.source.text.len());
        let to = start(self.index + self.length).unwrap_or(self.source.text.len());
        let Some(at) = self.source.text[from..to].find(part) else { return self.clone() };
        let before = &self.source.text[from..from + at];
        let (lines, tail) = (before.matches('\n').count(), before.rsplit('\n').next().unwrap_or_default());
        let tail = tail.chars().count();
        Self {
            source: Rc::clone(&self.source),
            line: self.line + lines,
            column: if lines == 0 { self.column + tail } else { tail + 1 },
            index: self.index + before.chars().count(),
            length: part.chars().count(),
        }
    }
}

/// Something that is wrong, and where.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to write instead.
    pub why: String,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text, a number, true, false or null.
    Scalar(Json),
    /// A list.
    List(Vec<Node>),
    /// An object, in its order.
    Map(Vec<Field>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The fields; of what is no object none.
    pub fn fields(&self) -> &[Field] {
        match &self.value {
            Value::Map(fields) => fields,
            _ => &[],
        }
    }

    /// The items; of what is no list none.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.fields().iter().find(|field| field.name == name).map(|field| &field.node)
    }

    /// As [`Node::get`].
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.value {
            Value::Map(fields) => fields.iter_mut().find(|field| field.name == name).map(|field| &mut field.node),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// As JSON, without places.
    pub fn json(&self) -> Json {
        match &self.value {
            Value::Scalar(scalar) => scalar.clone(),
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(fields) => {
                Json::Object(fields.iter().map(|field| (field.name.clone(), field.node.json())).collect::<Map<_, _>>())
            }
        }
    }

    /// The place of a JSON Pointer, of the name or the value there; of the deepest object on the way
    /// where the rest is missing.
    pub fn place_of(&self, pointer: &str, is_name: bool) -> &Place {
        let (mut node, mut name) = (self, &self.place);
        for part in pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")) {
            match &node.value {
                Value::Map(fields) => {
                    let Some(field) = fields.iter().find(|field| field.name == part) else { break };
                    (node, name) = (&field.node, &field.place);
                }
                Value::List(items) => {
                    let Some(item) = part.parse::<usize>().ok().and_then(|at| items.get(at)) else { break };
                    (node, name) = (item, &item.place);
                }
                Value::Scalar(_) => break,
            }
        }
        if is_name { name } else { &node.place }
    }
}

/// Reads a file: one tree for each document in it, or the first place that is no YAML.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Result<Vec<Node>, Fault>> {
    use anyhow::Context;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    // A byte order mark is no text.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let text = if text.trim_start().starts_with(['{', '[']) { without_pairs(&text) } else { text };
    let absolute = std::path::absolute(path).with_context(|| format!("cannot find {name}"))?;
    let folder = absolute.parent().map(Path::to_owned).unwrap_or_default();
    let source = Rc::new(Source { name, folder, text });
    Ok(match documents(&source) {
        Ok(documents) if documents.is_empty() => {
            let why = "there is no definition in this file".to_owned();
            Err(Fault { place: Place::start_of(&source), why })
        }
        documents => documents,
    })
}

/// JSON without `\ud83d\ude00` and the like, which YAML writes as `\U0001f600`.
fn without_pairs(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = |from: usize| {
            let digits = escape.get(from..from + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(digits, 16).ok()
        };
        let pair = unit(0).zip(unit(6)).and_then(|(high, low)| char::decode_utf16([high, low]).next()?.ok());
        let pair = pair.filter(|c| c.len_utf16() == 2);
        let length = match pair {
            Some(c) => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)));
                12
            }
            None => {
                let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&escape[..length]);
                length
            }
        };
        rest = &escape[length..];
    }
    out + rest
}

fn documents(source: &Rc<Source>) -> Result<Vec<Node>, Fault> {
    let parser = Parser::new_from_str(&source.text);
    let mut reader = Reader { source, parser, anchors: HashMap::new(), values: 0 };
    let mut documents = Vec::new();
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => documents.push(reader.node(event, span, 0)?),
        }
    }
    // `---` at the end begins nothing.
    documents.retain(|node| !matches!(node.value, Value::Scalar(Json::Null)));
    Ok(documents)
}

struct Reader<'a> {
    source: &'a Rc<Source>,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    values: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Fault> {
        self.parser.next_event().transpose().map_err(|error| {
            let place = Place::of(self.source, Span::empty(*error.marker()));
            Fault { place, why: format!("this is no YAML: {}", error.info()) }
        })
    }

    fn fault<T>(&self, span: Span, why: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { place: Place::of(self.source, span), why: why.into() })
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), Fault> {
        self.values += more;
        match self.values > MOST_VALUES {
            true => self.fault(span, format!("a file has at most {MOST_VALUES} values, those of aliases included")),
            false => Ok(()),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Fault> {
        if depth > DEEPEST {
            return self.fault(span, format!("this is nested more than {DEEPEST} deep"));
        }
        self.count(1, span)?;
        let place = Place::of(self.source, span);
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (Value::Scalar(scalar(&text, style, tag.as_deref())), anchor),
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return self.fault(span, "this alias stands in the value that it names");
                };
                self.count(size(&node), span)?;
                return Ok(node);
            }
            _ => return self.fault(span, "a value is missing here"),
        };
        let node = Node { place, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if event == Event::SequenceEnd {
                break;
            }
            items.push(self.node(event, span, depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let (mut fields, mut merged): (Vec<Field>, Vec<Node>) = (Vec::new(), Vec::new());
        while let Some((event, span)) = self.next()? {
            let (name, is_plain) = match event {
                Event::MappingEnd => break,
                Event::Scalar(name, style, ..) => (name.into_owned(), style == ScalarStyle::Plain),
                _ => return self.fault(span, "the name of a field must be a text"),
            };
            let Some((event, of_value)) = self.next()? else { break };
            let node = self.node(event, of_value, depth + 1)?;
            if name == "<<" && is_plain {
                merged.push(node);
                continue;
            }
            if let Some(first) = fields.iter().find(|field| field.name == name) {
                return self.fault(span, format!("{name:?} stands twice; it is in line {} already", first.place.line));
            }
            fields.push(Field { name, place: Place::of(self.source, span), node });
        }
        for node in merged {
            add_missing(&mut fields, node);
        }
        Ok(Value::Map(fields))
    }
}

/// What a merge key adds: the fields of an object, or of a list of them, that are not there.
fn add_missing(fields: &mut Vec<Field>, node: Node) {
    match node.value {
        Value::Map(more) => {
            for field in more {
                if fields.iter().all(|known| known.name != field.name) {
                    fields.push(field);
                }
            }
        }
        Value::List(items) => items.into_iter().for_each(|item| add_missing(fields, item)),
        Value::Scalar(_) => {}
    }
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::Scalar(_) => 1,
        Value::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(fields) => 1 + fields.iter().map(|field| size(&field.node)).sum::<usize>(),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Json {
    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    match style {
        ScalarStyle::Plain if !is_text => plain(text),
        _ => text.into(),
    }
}

/// A scalar without quotes, by the core schema.
pub fn plain(text: &str) -> Json {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).unwrap_or_else(|| text.into()),
    }
}

fn number(text: &str) -> Option<Json> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let radix = |prefix: &str, radix| text.strip_prefix(prefix).map(|digits| i64::from_str_radix(digits, radix).ok());
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return number.map(Json::from);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(number) = text.parse::<i64>()
    {
        return Some(number.into());
    }
    let is_number = unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let number = text.parse::<f64>().ok().filter(|_| is_number)?;
    serde_json::Number::from_f64(number).map(Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Json, String> {
        let source = Source::given("x".to_owned(), text);
        let documents = documents(&source).map_err(|fault| fault.why)?;
        Ok(documents.first().map(Node::json).unwrap_or_default())
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        for (text, value) in [
            ("~", json!(null)),
            ("True", json!(true)),
            ("yes", json!("yes")),
            ("2026-11-30", json!("2026-11-30")),
            ("-7", json!(-7)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("1.5e3", json!(1500.0)),
            ("1.2.3", json!("1.2.3")),
            (".inf", json!(".inf")),
            ("'7'", json!("7")),
            ("!!str 7", json!("7")),
        ] {
            assert_eq!(plain_or_read(text), value, "{text}");
        }
    }

    fn plain_or_read(text: &str) -> Json {
        read(&format!("- {text}")).unwrap()[0].clone()
    }

    #[test]
    fn what_is_named_once_can_stand_twice() {
        let text = "a: &a { x: 1, y: 2 }\nb: { <<: *a, y: 3 }\nc: { <<: [*a, { z: 4 }] }\nd: *a\n";
        let wanted = json!({ "a": { "x": 1, "y": 2 }, "b": { "y": 3, "x": 1 }, "c": { "x": 1, "y": 2, "z": 4 },
            "d": { "x": 1, "y": 2 } });
        assert_eq!(read(text).unwrap(), wanted);
        assert!(read("a: &a [*a]").unwrap_err().contains("in the value that it names"));
        assert!(read("? [a]\n: b").unwrap_err().contains("must be a text"));
    }

    #[test]
    fn any_json_is_read_as_json() {
        let text = r#"{"a":"\ud83d\ude00 \\ud83d\\ude00 \u017e \/ \"","b":[{},[],null,1e2,-0.5],	"c":true}"#;
        assert_eq!(read(&without_pairs(text)).unwrap(), serde_json::from_str::<Json>(text).unwrap());
    }
}
