//! `lakescope jobs apply` and `validate`: definitions in files, and a server that is to have them.

use super::jobs::whole;
use super::remote::{Form, Server, show, text};
use crate::cli::Global;
use crate::definitions::{self, Definition, Options, Read, User};
use crate::output;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::ExitCode;

/// Options of `apply`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is read.
    #[command(flatten)]
    pub read: Options,
    /// Only say what would be made and changed.
    #[arg(long)]
    pub dry_run: bool,
}

/// Says what is wrong with files, or which jobs they define.
pub fn validate(options: &Options, form: Form, global: &Global) -> Result<ExitCode> {
    let Some(read) = checked(options, form, global)? else { return Ok(ExitCode::from(2)) };
    if form == Form::Json {
        show(&json!([]), global)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut by_file: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for definition in &read.definitions {
        by_file.entry(&definition.file).or_default().push(definition.plain_name());
    }
    for (file, names) in by_file {
        let jobs = if names.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", names.len()) };
        output::put(&format!("{file}: {jobs}: {}\n", names.join(", ")), None, global.color)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What files define; `None`: something is wrong with them, and has been told.
fn checked(options: &Options, form: Form, global: &Global) -> Result<Option<Read>> {
    let faults = match definitions::read(options)? {
        Ok(read) => {
            if !global.quiet {
                read.remarks.iter().for_each(|remark| output::remark(remark));
            }
            return Ok(Some(read));
        }
        Err(faults) => faults,
    };
    if form == Form::Json {
        show(&definitions::faults_json(&faults), global)?;
        return Ok(None);
    }
    output::put(&definitions::faults_text(&faults), None, global.color)?;
    let many = if faults.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", faults.len()) };
    output::complain(global.color, "error", &format!("{many} in the files"));
    Ok(None)
}

/// What became of a definition.
struct Done {
    name: String,
    key: Option<String>,
    job_id: Option<i64>,
    action: Action,
    changes: Vec<Change>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Created,
    Changed,
    Unchanged,
}

impl Action {
    const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }

    const fn planned(self) -> &'static str {
        match self {
            Self::Created => "to create",
            Self::Changed => "to change",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Gives a server what files define: makes what is not there, changes what differs.
pub async fn apply(args: &Args, server: &Server, form: Form, global: &Global) -> Result<ExitCode> {
    let Some(read) = checked(&args.read, form, global)? else { return Ok(ExitCode::from(2)) };
    let user = user(server).await?;
    let known = known(&read.definitions, server, &user).await?;
    let mut ids = ids(&read.definitions, &known);
    let mut all = Vec::new();
    for at in in_order(&read.definitions)? {
        let done = one(&read.definitions[at], known[at].as_ref(), &user, &ids, args.dry_run, server).await?;
        ids.extend(done.key.clone().zip(done.job_id));
        if form == Form::Text {
            output::put(&told(&done, args.dry_run), None, global.color)?;
        }
        all.push(done);
    }
    if form == Form::Json {
        show(&all.iter().map(|done| as_json(done, args.dry_run)).collect(), global)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn user(server: &Server) -> Result<User> {
    let me = server.get("/api/2.0/preview/scim/v2/Me", &[]).await.context("cannot find out who applies")?;
    Ok(User { name: text(&me, "userName") })
}

/// The job that a server has for each definition. They are looked for before anything is changed, so
/// that a name that is not clear changes nothing.
async fn known(definitions: &[Definition], server: &Server, user: &User) -> Result<Vec<Option<Value>>> {
    let mut known = Vec::with_capacity(definitions.len());
    for definition in definitions {
        let name = text(&definition.settings(user, &BTreeMap::new()), "name");
        let query = [("name", name.clone()), ("limit", "100".to_owned())];
        let mut jobs = server.list("/api/2.2/jobs/list", "jobs", &query, usize::MAX).await?;
        jobs.retain(|job| job["settings"]["name"] == *name);
        known.push(match jobs.as_slice() {
            [] => None,
            [job] => Some(whole(server, "/api/2.2/jobs/get", &[("job_id", text(job, "job_id"))]).await?),
            several => {
                let ids: Vec<String> = several.iter().map(|job| text(job, "job_id")).collect();
                bail!(
                    "the server has {} jobs of the name {name:?}: {}; delete or rename all but one",
                    ids.len(),
                    ids.join(", ")
                )
            }
        });
    }
    Ok(known)
}

fn ids(definitions: &[Definition], known: &[Option<Value>]) -> BTreeMap<String, i64> {
    let id = |(definition, job): (&Definition, &Option<Value>)| {
        Some((definition.key.clone()?, job.as_ref()?["job_id"].as_i64()?))
    };
    definitions.iter().zip(known).filter_map(id).collect()
}

/// Positions of definitions, each behind those whose ids it needs.
fn in_order(definitions: &[Definition]) -> Result<Vec<usize>> {
    let (mut order, mut done) = (Vec::new(), BTreeSet::new());
    while order.len() < definitions.len() {
        let is_ready = |at: &usize| {
            let others = definitions[*at].needs();
            !order.contains(at) && others.iter().all(|key| done.contains(key))
        };
        let Some(next) = (0..definitions.len()).find(is_ready) else {
            let left = (0..definitions.len()).filter(|at| !order.contains(at));
            let left: Vec<&str> = left.map(|at| definitions[at].plain_name()).collect();
            bail!("these jobs need the ids of one another: {}; let one of them name an id", left.join(", "));
        };
        order.push(next);
        done.extend(definitions[next].key.clone());
    }
    Ok(order)
}

async fn one(
    definition: &Definition,
    known: Option<&Value>,
    user: &User,
    ids: &BTreeMap<String, i64>,
    is_dry: bool,
    server: &Server,
) -> Result<Done> {
    let settings = definition.settings(user, ids);
    let (name, key) = (text(&settings, "name"), definition.key.clone());
    let Some(known) = known else {
        let job_id = match is_dry {
            true => None,
            false => server.post("/api/2.2/jobs/create", &settings).await?["job_id"].as_i64(),
        };
        return Ok(Done { name, key, job_id, action: Action::Created, changes: Vec::new() });
    };
    let mut changes = Vec::new();
    compare("", Some(&known["settings"]), Some(&settings), &mut changes);
    let action = if changes.is_empty() { Action::Unchanged } else { Action::Changed };
    if action == Action::Changed && !is_dry {
        let sent = json!({ "job_id": known["job_id"], "new_settings": settings });
        server.post("/api/2.2/jobs/reset", &sent).await?;
    }
    Ok(Done { name, key, job_id: known["job_id"].as_i64(), action, changes })
}

/// A field that differs.
#[derive(Debug, PartialEq)]
struct Change {
    /// Names from the outside in; items of lists by their key.
    field: String,
    from: Option<Value>,
    to: Option<Value>,
}

/// Fields by which items of lists are told apart.
const KEYS: [&str; 4] = ["task_key", "job_cluster_key", "environment_key", "name"];

/// What differs between two definitions. A field that says nothing is none: servers add such.
fn compare(field: &str, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    let (from, to) = (from.filter(|value| !says_nothing(value)), to.filter(|value| !says_nothing(value)));
    match (from, to) {
        (None, None) => return,
        (Some(Value::Object(from)), Some(Value::Object(to))) => return compare_fields(field, from, to, changes),
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            if let (Some(from), Some(to)) = (keyed(from), keyed(to)) {
                return compare_fields(field, &from, &to, changes);
            }
        }
        _ => {}
    }
    if from != to {
        changes.push(Change { field: field.to_owned(), from: from.cloned(), to: to.cloned() });
    }
}

fn compare_fields(field: &str, from: &Map<String, Value>, to: &Map<String, Value>, changes: &mut Vec<Change>) {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    for name in names {
        let field = if field.is_empty() { name.clone() } else { format!("{field}/{name}") };
        compare(&field, from.get(name), to.get(name), changes);
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

/// A list by the keys of its items; `None`: they have none, or two have the same.
fn keyed(items: &[Value]) -> Option<Map<String, Value>> {
    let key = KEYS.into_iter().find(|key| items.iter().all(|item| item[*key].is_string()))?;
    let by_key: Map<String, Value> = items.iter().map(|item| (text(item, key), item.clone())).collect();
    (by_key.len() == items.len()).then_some(by_key)
}

/// Most characters of a value that is shown.
const WIDEST: usize = 60;

fn told(done: &Done, is_dry: bool) -> String {
    let word = if is_dry { done.action.planned() } else { done.action.word() };
    let id = done.job_id.map(|id| format!("  (job {id})")).unwrap_or_default();
    let mut told = format!("{word:<9}  {}{id}\n", crate::render::one_line(&done.name));
    for Change { field, from, to } in &done.changes {
        let _ = match (from.as_ref().map(short), to.as_ref().map(short)) {
            (Some(from), Some(to)) => writeln!(told, "           ~ {field}: {from} -> {to}"),
            (Some(from), None) => writeln!(told, "           - {field}: {from}"),
            (None, Some(to)) => writeln!(told, "           + {field}: {to}"),
            (None, None) => Ok(()),
        };
    }
    told
}

fn short(value: &Value) -> String {
    let text = crate::render::one_line(&value.to_string());
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST).chain(['…']).collect(),
        false => text,
    }
}

fn as_json(done: &Done, is_dry: bool) -> Value {
    let change = |change: &Change| json!({ "field": change.field, "from": change.from, "to": change.to });
    json!({
        "name": done.name,
        "key": done.key,
        "job_id": done.job_id,
        "action": done.action.word(),
        "dry_run": is_dry,
        "changes": done.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let was = json!({ "name": "night", "max_concurrent_runs": 1, "timeout_seconds": 0, "email_notifications": {},
            "queue": { "enabled": true }, "tags": { "a": "1" },
            "tasks": [{ "task_key": "a", "run_if": "ALL_SUCCESS", "parameters": ["x"] }, { "task_key": "b" }] });
        let is = json!({ "name": "night", "max_concurrent_runs": 4, "queue": { "enabled": true },
            "schedule": { "timezone_id": "UTC" },
            "tasks": [{ "task_key": "c" }, { "task_key": "a", "run_if": "ALL_SUCCESS", "parameters": ["x", "y"] }] });
        let mut changes = Vec::new();
        compare("", Some(&was), Some(&is), &mut changes);
        let done = Done { name: "night".into(), key: None, job_id: Some(7), action: Action::Changed, changes };
        expect_test::expect![[r#"
            changed    night  (job 7)
                       ~ max_concurrent_runs: 1 -> 4
                       + schedule: {"timezone_id":"UTC"}
                       - tags: {"a":"1"}
                       ~ tasks/a/parameters: ["x"] -> ["x","y"]
                       - tasks/b: {"task_key":"b"}
                       + tasks/c: {"task_key":"c"}
        "#]]
        .assert_eq(&told(&done, false));
        let mut none = Vec::new();
        compare("", Some(&was), Some(&was), &mut none);
        assert_eq!(none, Vec::new());
    }
}
