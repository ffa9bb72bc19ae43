//! The jobs of a Databricks Asset Bundle: includes, targets, variables, development copies.
//!
//! Of a bundle this reads `bundle`, `include`, `variables`, `resources.jobs`, `targets` and `presets`.
//! Files are not copied anywhere, so `${workspace.file_path}` is the folder of the bundle.

use super::tree::{Fault, Field, Node, Value, plain, read as read_file};
use super::{Options, Read, User, add, paths};
use anyhow::{Result, bail};
use run::references::hint;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// Lists whose items are told apart by a field, and merged by it.
const KEYED: [(&str, &str); 4] = [
    ("tasks", "task_key"),
    ("job_clusters", "job_cluster_key"),
    ("parameters", "name"),
    ("environments", "environment_key"),
];
/// A field of a job that is the bundle's own.
const OF_BUNDLE: &str = "lifecycle";
/// Runs at once of a development copy.
const DEVELOPMENT_RUNS: i64 = 4;
/// Deepest nesting of variables in variables.
const DEEPEST: usize = 10;
/// First words of references of a bundle. Others are left alone: shells and Spark have them too.
const FIRST: [&str; 8] = ["artifacts", "bundle", "presets", "resources", "targets", "var", "variables", "workspace"];

/// What a target makes of every job.
#[derive(Clone, Debug, Default)]
pub(super) struct Presets {
    is_development: bool,
    name_prefix: Option<String>,
    tags: BTreeMap<String, String>,
    max_concurrent_runs: Option<i64>,
    pause_status: Option<String>,
}

impl Presets {
    pub fn apply(&self, job: &mut Map<String, Json>, user: &User) {
        let (mut tags, short) = (self.tags.clone(), user.short_name());
        let mut prefix = self.name_prefix.clone();
        let (mut runs, mut pause) = (self.max_concurrent_runs, self.pause_status.clone());
        if self.is_development {
            tags.entry("dev".to_owned()).or_insert_with(|| short.clone());
            prefix.get_or_insert_with(|| format!("[dev {short}] "));
            runs.get_or_insert(DEVELOPMENT_RUNS);
            pause.get_or_insert_with(|| "PAUSED".to_owned());
        }
        let name = job["name"].as_str().unwrap_or_default();
        let name = format!("{}{name}", prefix.as_deref().map(|prefix| filled_in(prefix, user)).unwrap_or_default());
        job.insert("name".to_owned(), name.into());
        for (tag, value) in tags {
            let Some(tags) = job.entry("tags").or_insert_with(|| json!({})).as_object_mut() else { break };
            if tags.get(&tag).is_none_or(|value| value == "") {
                tags.insert(tag, value.into());
            }
        }
        if let Some(runs) = runs.filter(|_| job.get("max_concurrent_runs").is_none_or(|runs| *runs == 0)) {
            job.insert("max_concurrent_runs".to_owned(), runs.into());
        }
        let Some(pause) = pause else { return };
        for cause in ["schedule", "continuous", "trigger"] {
            if let Some(Json::Object(cause)) = job.get_mut(cause) {
                cause.entry("pause_status").or_insert_with(|| pause.clone().into());
            }
        }
    }
}

/// Whether a document is a bundle, or a part of one.
pub(super) fn is_one(document: &Node) -> bool {
    ["bundle", "resources", "targets"].iter().any(|name| document.get(name).is_some())
}

/// Reads the jobs of a bundle.
///
/// # Errors
/// When an included file cannot be read, or an option names nothing that there is.
pub(super) fn read(mut root: Node, options: &Options, read: &mut Read, faults: &mut Vec<Fault>) -> Result<()> {
    include(&mut root, faults)?;
    let target = target(&root, options)?;
    let mut variables = declared(root.get("variables"));
    if let Some(target) = &target {
        variables.extend(declared(target.node.get("variables")).into_iter().filter(|(_, value)| value.is_some()));
        for field in target.node.fields().iter().filter(|field| field.name != "variables") {
            let mut overlay = root.clone();
            overlay.value = Value::Map(vec![field.clone()]);
            merge(&mut root, overlay, "");
        }
    }
    let given = given(options, &variables)?;
    variables.extend(given.into_iter().map(|(name, value)| (name, Some(value))));
    let presets = presets(&root, target.as_ref(), faults);
    let about =
        About { root: &root, variables: &variables, target: target.as_ref().map(|target| target.name.as_str()) };
    let Some(resources) = root.get("resources") else { return Ok(()) };
    let others: Vec<&str> =
        resources.fields().iter().map(|field| field.name.as_str()).filter(|n| *n != "jobs").collect();
    if !others.is_empty() {
        read.remarks.push(format!("{}: only jobs are read, not {}", root.place.source.name, others.join(", ")));
    }
    for field in resources.get("jobs").map(Node::fields).unwrap_or_default() {
        let mut job = field.node.clone();
        about.resolve(&mut job, 0, faults);
        if let Value::Map(fields) = &mut job.value {
            fields.retain(|field| field.name != OF_BUNDLE);
        }
        add(job, Some(field.name.clone()), presets.clone(), read, faults);
    }
    Ok(())
}

/// Adds what the files of `include` have.
fn include(root: &mut Node, faults: &mut Vec<Fault>) -> Result<()> {
    for pattern in root.get("include").map(Node::items).unwrap_or_default().to_vec() {
        let Some(text) = pattern.text() else { continue };
        let files = paths::matching(&pattern.place.source.folder, text);
        if files.is_empty() {
            let why = format!("no file has a name like {text:?} in {}", pattern.place.source.folder.display());
            faults.push(Fault { place: pattern.place.clone(), why });
        }
        let here = std::env::current_dir().unwrap_or_default();
        for file in files {
            match read_file(file.strip_prefix(&here).unwrap_or(&file))? {
                Err(fault) => faults.push(fault),
                Ok(documents) => documents.into_iter().for_each(|document| merge(root, document, "")),
            }
        }
    }
    Ok(())
}

/// Puts one value over another one: objects field by field, items of lists by their key where they
/// have one, behind one another where they have none.
fn merge(under: &mut Node, over: Node, name: &str) {
    match (&mut under.value, over.value) {
        (Value::Map(fields), Value::Map(more)) => {
            for field in more {
                match fields.iter_mut().find(|known| known.name == field.name) {
                    Some(known) => merge(&mut known.node, field.node, &field.name),
                    None => fields.push(field),
                }
            }
        }
        (Value::List(items), Value::List(more)) => {
            let key = KEYED.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
            let key_of = |item: &Node| item.get(key?)?.text().map(str::to_owned);
            for item in more {
                let same =
                    key_of(&item).and_then(|key| items.iter().position(|known| key_of(known) == Some(key.clone())));
                match same {
                    Some(at) => merge(&mut items[at], item, ""),
                    None => items.push(item),
                }
            }
        }
        (_, value) => *under = Node { place: over.place, value },
    }
}

/// The target that is asked for, or the default one.
fn target(root: &Node, options: &Options) -> Result<Option<Field>> {
    let targets = root.get("targets").map(Node::fields).unwrap_or_default();
    let names = || targets.iter().map(|target| target.name.as_str());
    let file = &root.place.source.name;
    if let Some(name) = &options.target {
        let Some(found) = targets.iter().find(|target| target.name == *name) else {
            bail!("there is no target {name:?} in {file}; {}", hint(name, names()));
        };
        return Ok(Some(found.clone()));
    }
    let is_default = |target: &&Field| target.node.get("default").is_some_and(|value| value.json() == true);
    let defaults: Vec<&Field> = targets.iter().filter(is_default).collect();
    match (defaults.as_slice(), targets) {
        ([one], _) => Ok(Some((*one).clone())),
        ([], [one]) => Ok(Some(one.clone())),
        ([], []) => Ok(None),
        ([], _) => bail!("none of the targets of {file} is the default one; name one with --target: {}", join(names())),
        _ => bail!("{file} has more than one default target; name one with --target: {}", join(names())),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Values of variables; `None`: it has none.
type Variables = BTreeMap<String, Option<Node>>;

/// Variables with their defaults. A target may give the value alone.
fn declared(variables: Option<&Node>) -> Variables {
    let value = |node: &Node| match &node.value {
        Value::Map(fields)
            if fields.iter().all(|f| ["default", "description", "lookup", "type"].contains(&&*f.name)) =>
        {
            node.get("default").cloned()
        }
        Value::Scalar(Json::Null) => None,
        _ => Some(node.clone()),
    };
    let fields = variables.map(Node::fields).unwrap_or_default();
    fields.iter().map(|field| (field.name.clone(), value(&field.node))).collect()
}

/// Values from the environment and from options, the latter last.
fn given(options: &Options, variables: &Variables) -> Result<Vec<(String, Node)>> {
    let mut given = Vec::new();
    let node = |name: &str, text: &str| {
        let source = super::tree::Source::given(format!("--var {name}"), text);
        Node { place: super::tree::Place::start_of(&source), value: Value::Scalar(plain(text)) }
    };
    for name in variables.keys() {
        if let Ok(text) = std::env::var(format!("BUNDLE_VAR_{name}")) {
            given.push((name.clone(), node(name, &text)));
        }
    }
    for variable in &options.variables {
        let Some((name, text)) = variable.split_once('=') else {
            bail!("--var {variable:?} is not of the form NAME=VALUE")
        };
        if !variables.contains_key(name) {
            bail!(
                "--var {name}: the bundle has no such variable; {}",
                hint(name, variables.keys().map(String::as_str))
            );
        }
        given.push((name.to_owned(), node(name, text)));
    }
    Ok(given)
}

fn presets(root: &Node, target: Option<&Field>, faults: &mut Vec<Fault>) -> Presets {
    let mode = target.and_then(|target| target.node.get("mode"));
    let is_development = mode.and_then(Node::text) == Some("development");
    if let Some(mode) = mode.filter(|mode| !matches!(mode.text(), Some("development" | "production"))) {
        let word = mode.text().unwrap_or_default();
        let why = format!("mode cannot be {word:?}; {}", hint(word, ["development", "production"]));
        faults.push(Fault { place: mode.place.clone(), why });
    }
    let of = |name: &str| root.get("presets").and_then(|presets| presets.get(name));
    let text = |name: &str| of(name).and_then(Node::text).map(str::to_owned);
    let tags = of("tags").map(Node::fields).unwrap_or_default().iter();
    Presets {
        is_development,
        name_prefix: text("name_prefix").filter(|prefix| !prefix.is_empty()),
        tags: tags.filter_map(|tag| Some((tag.name.clone(), tag.node.text()?.to_owned()))).collect(),
        max_concurrent_runs: of("jobs_max_concurrent_runs").and_then(|many| many.json().as_i64()),
        pause_status: text("trigger_pause_status"),
    }
}

/// What references of a bundle stand for.
struct About<'a> {
    root: &'a Node,
    variables: &'a Variables,
    target: Option<&'a str>,
}

enum Found {
    /// A value.
    Value(Node),
    /// Known only when the job goes to a server.
    Later,
}

impl About<'_> {
    /// Puts values in the place of references.
    fn resolve(&self, node: &mut Node, depth: usize, faults: &mut Vec<Fault>) {
        match &mut node.value {
            Value::List(items) => items.iter_mut().for_each(|item| self.resolve(item, depth, faults)),
            Value::Map(fields) => fields.iter_mut().for_each(|field| self.resolve(&mut field.node, depth, faults)),
            Value::Scalar(Json::String(text)) if text.contains("${") => {
                let text = text.clone();
                if let Some(value) = self.resolved(&text, node, depth, faults) {
                    node.value = value;
                }
            }
            Value::Scalar(_) => {}
        }
    }

    fn resolved(&self, text: &str, node: &Node, depth: usize, faults: &mut Vec<Fault>) -> Option<Value> {
        let mut out = String::new();
        for piece in pieces(text) {
            let Piece::Reference(whole, inside) = piece else {
                out.push_str(piece.text());
                continue;
            };
            let found = match self.found(inside) {
                _ if depth > DEEPEST => Err("it refers to itself".to_owned()),
                found => found,
            };
            match found {
                Err(why) => {
                    out.push_str(whole);
                    faults.push(Fault { place: node.place.of_part(whole), why: format!("{whole}: {why}") });
                }
                Ok(Found::Later) => out.push_str(whole),
                Ok(Found::Value(mut value)) => {
                    self.resolve(&mut value, depth + 1, faults);
                    if whole == text {
                        return Some(value.value);
                    }
                    match &value.value {
                        Value::Scalar(Json::String(text)) => out.push_str(text),
                        Value::Scalar(scalar) => out.push_str(&scalar.to_string()),
                        _ => {
                            let why = format!("{whole} is a list or an object; it can only stand alone");
                            faults.push(Fault { place: node.place.of_part(whole), why });
                        }
                    }
                }
            }
        }
        Some(Value::Scalar(out.into()))
    }

    fn found(&self, reference: &str) -> std::result::Result<Found, String> {
        let path: Vec<&str> = reference.split('.').collect();
        let text = |text: String| Node { place: self.root.place.clone(), value: Value::Scalar(text.into()) };
        match path.as_slice() {
            ["var", name, rest @ ..] | ["variables", name, "default" | "value", rest @ ..] => {
                let Some(value) = self.variables.get(*name) else {
                    return Err(format!(
                        "there is no such variable; {}",
                        hint(name, self.variables.keys().map(|n| &**n))
                    ));
                };
                let value =
                    value.as_ref().ok_or_else(|| format!("it has no value; give it one with --var {name}=…"))?;
                within(value, rest)
            }
            ["bundle", "target" | "environment"] => match self.target {
                Some(name) => Ok(Found::Value(text(name.to_owned()))),
                None => Err("the bundle has no target; add one under `targets`".to_owned()),
            },
            ["workspace", "current_user", "userName" | "short_name"] => Ok(Found::Later),
            ["workspace", "file_path"] => Ok(Found::Value(text(self.root.place.source.folder.display().to_string()))),
            ["resources", "jobs", key, "id"] => {
                let jobs =
                    self.root.get("resources").and_then(|all| all.get("jobs")).map(Node::fields).unwrap_or_default();
                match jobs.iter().any(|job| job.name == *key) {
                    true => Ok(Found::Later),
                    false => Err(format!("there is no such job; {}", hint(key, jobs.iter().map(|job| &*job.name)))),
                }
            }
            path => within(self.root, path),
        }
    }
}

/// The value at a path in another one.
fn within(node: &Node, path: &[&str]) -> std::result::Result<Found, String> {
    let mut at = node;
    for name in path {
        let known = at.fields().iter().map(|field| field.name.as_str());
        at = at.get(name).ok_or_else(|| format!("there is no {name:?}; {}", hint(name, known)))?;
    }
    Ok(Found::Value(at.clone()))
}

enum Piece<'a> {
    Text(&'a str),
    /// With its braces, and what stands in them.
    Reference(&'a str, &'a str),
}

impl<'a> Piece<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Reference(text, _) => text,
        }
    }
}

/// The parts of a text: `${var.day}` and the like, and what is between them.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(from) = rest.find("${") {
        let inside = &rest[from + 2..];
        let end = inside.find('}').unwrap_or(inside.len());
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let first = inside[..end].split('.').next().unwrap_or_default();
        let is_ours = end < inside.len() && inside[..end].chars().all(is_name) && FIRST.contains(&first);
        let after = if is_ours { from + 2 + end + 1 } else { from + 2 };
        match is_ours {
            true => pieces.extend([Piece::Text(&rest[..from]), Piece::Reference(&rest[from..after], &inside[..end])]),
            false => pieces.push(Piece::Text(&rest[..after])),
        }
        rest = &rest[after..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The key of the job whose id a text stands for.
fn job_of(text: &str) -> Option<&str> {
    let key = text.strip_prefix("${resources.jobs.")?.strip_suffix(".id}")?;
    (!key.contains(['.', '}'])).then_some(key)
}

fn each_text(value: &mut Json, change: &mut impl FnMut(&str) -> Option<Json>) {
    match value {
        Json::String(text) => {
            if let Some(new) = change(text) {
                *value = new;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Json::Object(fields) => fields.values_mut().for_each(|value| each_text(value, change)),
        _ => {}
    }
}

/// Collects the keys of the jobs whose ids a definition needs.
pub(super) fn job_ids(job: &Json, keys: &mut BTreeSet<String>) {
    each_text(&mut job.clone(), &mut |text| {
        keys.extend(job_of(text).map(str::to_owned));
        None
    });
}

/// Puts a number in the place of each id that is not known yet, so that the rest can be checked.
pub(super) fn stand_in(job: &mut Json) {
    each_text(job, &mut |text| job_of(text).map(|_| 1.into()));
}

/// Puts in what a server told.
pub(super) fn fill_in(job: &mut Json, user: &User, ids: &BTreeMap<String, i64>) {
    each_text(job, &mut |text| match job_of(text) {
        Some(key) => ids.get(key).map(|id| (*id).into()),
        None => text.contains("${workspace.current_user.").then(|| filled_in(text, user).into()),
    });
}

/// A text with the name of the user in it.
pub(super) fn filled_in(text: &str, user: &User) -> String {
    let text = text.replace("${workspace.current_user.short_name}", &user.short_name());
    text.replace("${workspace.current_user.userName}", &user.name)
}
