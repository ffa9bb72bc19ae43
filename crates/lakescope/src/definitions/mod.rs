//! Definitions of jobs in files: YAML or JSON, one, a list, or the jobs of a bundle.
//!
//! In: files. Out: definitions as the Jobs API takes them, or everything that is wrong with them,
//! each with its place. What a definition may be is decided by [`run::settings`]; here its places are
//! found again. Nothing here asks a server: what depends on one (who deploys, ids of jobs) is filled
//! in by [`Definition::settings`].

mod bundle;
mod paths;
mod report;
mod tree;

pub use report::{json as faults_json, text as faults_text};
pub use tree::Fault;

use anyhow::{Result, bail};
use bundle::Presets;
use run::settings::UNTITLED;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tree::{Node, Place, Value};

/// Fields that say who may what with a job.
const RIGHTS: [&str; 2] = ["access_control_list", "permissions"];

/// How files are read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Files with definitions of jobs, YAML or JSON: one job, a list of jobs, or a bundle.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Target of a bundle [default: the one with `default: true`, or the only one].
    #[arg(short, long, value_name = "NAME")]
    pub target: Option<String>,
    /// Value of a variable of a bundle; may be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
}

/// Definitions, and what was left aside.
#[derive(Debug, Default)]
pub struct Read {
    /// In the order of the files.
    pub definitions: Vec<Definition>,
    /// What the files have besides jobs, in words.
    pub remarks: Vec<String>,
    /// The file that is a bundle.
    bundle: Option<String>,
}

/// The definition of a job.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The file that it begins in.
    pub file: String,
    /// Its key in a bundle.
    pub key: Option<String>,
    /// Where its name stands, or where it begins.
    place: Place,
    job: Json,
    presets: Presets,
}

/// Who deploys: what a bundle takes from a server.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// Name of the user.
    pub name: String,
}

impl User {
    /// The part of the name before an @, as bundles shorten it.
    #[must_use]
    pub fn short_name(&self) -> String {
        let local = self.name.split('@').next().unwrap_or_default().to_lowercase();
        local.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
    }
}

impl Definition {
    /// What the file calls it: its name, else its key.
    #[must_use]
    pub fn plain_name(&self) -> &str {
        self.job["name"].as_str().or(self.key.as_deref()).unwrap_or(UNTITLED)
    }

    /// Keys of jobs of the same bundle whose ids it needs.
    #[must_use]
    pub fn needs(&self) -> BTreeSet<String> {
        let mut needs = BTreeSet::new();
        if self.key.is_some() {
            bundle::job_ids(&self.job, &mut needs);
        }
        needs
    }

    /// The definition as it goes to a server, for a user and with the ids of jobs by their keys. A job
    /// that has no id yet stays a reference.
    #[must_use]
    pub fn settings(&self, user: &User, ids: &BTreeMap<String, i64>) -> Json {
        let mut settings = self.job.clone();
        if let Json::Object(fields) = &mut settings {
            fields.insert("name".to_owned(), self.plain_name().into());
        }
        if self.key.is_some() {
            bundle::fill_in(&mut settings, user, ids);
        }
        if let Json::Object(fields) = &mut settings {
            self.presets.apply(fields, user);
            run::settings::fill_defaults(fields, true);
        }
        settings
    }
}

/// Reads files.
///
/// # Errors
/// When a file cannot be read, or an option names nothing that there is.
pub fn read(options: &Options) -> Result<std::result::Result<Read, Vec<Fault>>> {
    let (mut read, mut faults) = (Read::default(), Vec::new());
    for file in &options.files {
        match tree::read(file)? {
            Err(fault) => faults.push(fault),
            Ok(documents) => {
                for document in documents {
                    one_document(document, options, &mut read, &mut faults)?;
                }
            }
        }
    }
    same_names(&read, &mut faults);
    report::sort(&mut faults);
    Ok(if faults.is_empty() { Ok(read) } else { Err(faults) })
}

fn one_document(document: Node, options: &Options, read: &mut Read, faults: &mut Vec<Fault>) -> Result<()> {
    if bundle::is_one(&document) {
        let name = &document.place.source.name;
        if let Some(other) = read.bundle.replace(name.clone()) {
            bail!("{other} and {name} are both bundles; name one at a time, its `include` can name the other");
        }
        return bundle::read(document, options, read, faults);
    }
    let jobs = match document.items() {
        [] => vec![document],
        jobs => jobs.to_vec(),
    };
    for job in jobs {
        add(job, None, Presets::default(), read, faults);
    }
    Ok(())
}

/// Checks a job and takes it.
fn add(mut job: Node, key: Option<String>, presets: Presets, read: &mut Read, faults: &mut Vec<Fault>) {
    if let Value::Map(fields) = &mut job.value {
        let before = fields.len();
        fields.retain(|field| !RIGHTS.contains(&field.name.as_str()));
        if fields.len() < before {
            let name = key.as_deref().or_else(|| job.get("name")?.text()).unwrap_or(UNTITLED);
            read.remarks.push(format!("{name}: rights of single jobs are not set; here roles decide who may what"));
        }
    }
    paths::resolve(&mut job, faults);
    let mut checked = job.json();
    if key.is_some() {
        bundle::stand_in(&mut checked);
    }
    let before = faults.len();
    for problem in run::settings::problems(&checked) {
        let place = job.place_of(&problem.at, problem.is_name);
        let place = problem.part.map_or_else(|| place.clone(), |part| place.of_part(&part));
        // What a reference could not be replaced in has been told.
        if faults[..before].iter().all(|fault| !fault.place.is_same(&place)) {
            faults.push(Fault { place, why: problem.why.to_string() });
        }
    }
    if key.is_none() && job.get("name").is_none() && !job.fields().is_empty() {
        let why = "a job in a file needs a name: it is known by it".to_owned();
        faults.push(Fault { place: job.place.clone(), why });
    }
    let place = job.get("name").unwrap_or(&job).place.clone();
    let file = job.place.source.name.clone();
    read.definitions.push(Definition { file, key, place, job: job.json(), presets });
}

/// Two definitions of one name would undo one another.
fn same_names(read: &Read, faults: &mut Vec<Fault>) {
    let mut seen: BTreeMap<&str, &Place> = BTreeMap::new();
    for definition in &read.definitions {
        let (name, place) = (definition.plain_name(), &definition.place);
        match seen.get(name) {
            Some(first) => {
                let why =
                    format!("two jobs have the name {name:?}; the other is at {}:{}", first.source.name, first.line);
                faults.push(Fault { place: place.clone(), why });
            }
            None => drop(seen.insert(name, place)),
        }
    }
}
