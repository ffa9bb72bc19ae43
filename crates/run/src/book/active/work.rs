//! What a task comes to when it starts: its references resolved, the parameters that it was given.

use super::Active;
use crate::book::act::{Act, Finished, Program, TASK_RUN_ID};
use crate::book::known::{Known, text};
use crate::book::rows::Parent;
use crate::condition;
use crate::references::resolve;
use crate::settings::{TaskSettings, Work};
use crate::step::Epoch;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Deepest nesting of run-job tasks.
const DEEPEST: u32 = 3;
/// Most items of a for-each.
const MOST_ITEMS: usize = 10_000;

/// How a task begins.
pub(super) enum Begun {
    Answer(bool),
    Act(Act),
}

impl Active {
    /// What a task comes to, its references resolved.
    pub(super) fn begin(
        &mut self,
        task: usize,
        is_item: bool,
        id: i64,
        epoch: Epoch,
        input: Option<&Value>,
    ) -> Result<Begun, Finished> {
        let attempt = self.rows.get(&id).map_or(0, |row| row.row.attempt);
        let known = Known { run: self, task, task_run_id: id, attempt, input };
        let settings = &self.settings.tasks[task];
        let settings = match &settings.work {
            Work::ForEach { task, .. } if is_item => task,
            _ => settings,
        };
        let mut resolved = Map::new();
        let one = |text: &str| resolve(text, &known).map_err(Finished::invalid);
        let begun = match &settings.work {
            Work::Condition { op, left, right } => {
                let (left, right) = (one(left)?, one(right)?);
                resolved.insert("left".to_owned(), left.clone().into());
                resolved.insert("right".to_owned(), right.clone().into());
                Begun::Answer(condition::evaluate(*op, &left, &right).map_err(Finished::invalid)?)
            }
            Work::RunJob { job_id, parameters } => {
                let parameters = parameters.iter().map(|(name, value)| Ok((name.clone(), one(value)?)));
                let mut parameters: BTreeMap<String, String> = parameters.collect::<Result<_, Finished>>()?;
                parameters.extend(self.parameter_names().filter_map(|n| Some((n.to_owned(), self.parameter(n)?))));
                resolved.insert("job_parameters".to_owned(), json!(parameters));
                Begun::Act(self.run_job(*job_id, parameters, id, epoch)?)
            }
            Work::Other(kind) => {
                return Err(Finished::invalid(format!(
                    "lakescope cannot run a {kind}; run it on a Databricks workspace, or use another kind of task"
                )));
            }
            work => {
                let work = self.resolved(work, &one, &mut resolved)?;
                Begun::Act(self.program(settings, work, id, epoch))
            }
        };
        if let Some(row) = self.rows.get_mut(&id) {
            row.detail.resolved = resolved;
        }
        Ok(begun)
    }

    fn run_job(
        &self,
        job_id: i64,
        parameters: BTreeMap<String, String>,
        id: i64,
        epoch: Epoch,
    ) -> Result<Act, Finished> {
        let depth = self.about.parent.map_or(0, |parent| parent.depth) + 1;
        if depth > DEEPEST {
            return Err(Finished::invalid(format!(
                "run-job tasks stand more than {DEEPEST} deep; does one of them run a job above it?"
            )));
        }
        let parent = Parent { run_id: self.run_id, task_run_id: id, epoch, depth };
        Ok(Act::RunJob { parent, job_id, parameters })
    }

    /// The work of a program, its references resolved; parameters that the run or its repair was
    /// given stand for those of the task.
    fn resolved(
        &self,
        work: &Work,
        one: &impl Fn(&str) -> Result<String, Finished>,
        resolved: &mut Map<String, Value>,
    ) -> Result<Work, Finished> {
        let mut all = |field: &str, kind: &str, own: &[String]| -> Result<Vec<String>, Finished> {
            let given = self.overriding().get(kind).and_then(Value::as_array);
            let given = given.map(|texts| texts.iter().map(text).collect());
            let texts: Vec<String> = given.unwrap_or_else(|| own.to_vec());
            let texts = texts.iter().map(|text| one(text)).collect::<Result<Vec<_>, _>>()?;
            resolved.insert(field.to_owned(), texts.clone().into());
            Ok(texts)
        };
        Ok(match work {
            Work::Python { file, parameters } => {
                Work::Python { parameters: all("parameters", "python_params", parameters)?, file: one(file)? }
            }
            Work::Wheel { package, entry_point, parameters, named } if named.is_empty() => Work::Wheel {
                package: package.clone(),
                entry_point: entry_point.clone(),
                parameters: all("parameters", "python_params", parameters)?,
                named: BTreeMap::new(),
            },
            Work::Wheel { package, entry_point, named, .. } => Work::Wheel {
                package: package.clone(),
                entry_point: entry_point.clone(),
                parameters: Vec::new(),
                named: self.by_name("named_parameters", "python_named_params", named, one, resolved)?,
            },
            Work::Notebook { path, parameters } => Work::Notebook {
                path: one(path)?,
                parameters: self.by_name("base_parameters", "notebook_params", parameters, one, resolved)?,
            },
            Work::Dbt { project, profiles, commands } => {
                let commands = all("commands", "dbt_commands", commands)?;
                Work::Dbt { commands, project: one(project)?, profiles: one(profiles)? }
            }
            Work::SparkSubmit { parameters } => {
                Work::SparkSubmit { parameters: all("parameters", "spark_submit_params", parameters)? }
            }
            Work::SparkJar { jar, main_class, parameters } => Work::SparkJar {
                parameters: all("parameters", "jar_params", parameters)?,
                jar: one(jar)?,
                main_class: main_class.clone(),
            },
            other => other.clone(),
        })
    }

    /// Parameters of a kind that has them by name: those of the task, then what the run was given for
    /// this kind, then those of the job, which win.
    fn by_name(
        &self,
        field: &str,
        kind: &str,
        own: &BTreeMap<String, String>,
        one: &impl Fn(&str) -> Result<String, Finished>,
        resolved: &mut Map<String, Value>,
    ) -> Result<BTreeMap<String, String>, Finished> {
        let mut all = own.clone();
        let given = self.overriding().get(kind).and_then(Value::as_object);
        all.extend(given.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))));
        all.extend(self.parameter_names().filter_map(|name| Some((name.to_owned(), self.parameter(name)?))));
        let all = all.into_iter().map(|(name, value)| Ok((name, one(&value)?)));
        let all: BTreeMap<String, String> = all.collect::<Result<_, Finished>>()?;
        resolved.insert(field.to_owned(), json!(all));
        Ok(all)
    }

    /// What tasks have set for others so far, by their keys.
    fn values(&self) -> BTreeMap<String, Map<String, Value>> {
        let rows = (0..self.settings.tasks.len()).filter_map(|task| self.current(task));
        let with_values = rows.filter(|row| !row.detail.values.is_empty());
        with_values.map(|row| (row.row.task_key.clone(), row.detail.values.clone())).collect()
    }

    fn overriding(&self) -> &Map<String, Value> {
        let of_repair = self.rounds.last().map(|round| &round.overriding).filter(|given| !given.is_empty());
        of_repair.unwrap_or(&self.about.overriding)
    }

    fn program(&self, settings: &TaskSettings, work: Work, id: i64, epoch: Epoch) -> Act {
        let mut environment = settings.environment_variables.clone();
        let about = [("LAKESCOPE_JOB_ID", self.job_id), ("LAKESCOPE_RUN_ID", self.run_id), (TASK_RUN_ID, id)];
        environment.extend(about.map(|(name, value)| (name.to_owned(), value.to_string())));
        environment.insert("LAKESCOPE_TASK_KEY".to_owned(), settings.key.clone());
        let (cluster, libraries) = (settings.cluster.clone(), settings.libraries.clone());
        let (git, values) = (settings.git.clone(), self.values());
        let program = Box::new(Program { run_id: self.run_id, work, git, cluster, environment, libraries, values });
        Act::Launch { run_id: self.run_id, task_run_id: id, epoch, program }
    }

    /// The items of a for-each, or why there are none.
    pub(super) fn items(&self, task: usize) -> Result<Vec<Value>, String> {
        let Work::ForEach { inputs, .. } = &self.settings.tasks[task].work else { return Ok(Vec::new()) };
        let id = self.current[task].unwrap_or_default();
        let attempt = self.current(task).map_or(0, |row| row.row.attempt);
        let known = Known { run: self, task, task_run_id: id, attempt, input: None };
        let inputs = resolve(inputs, &known).map_err(|error| error.to_string())?;
        match serde_json::from_str(&inputs) {
            Ok(Value::Array(items)) if items.len() <= MOST_ITEMS => Ok(items),
            Ok(Value::Array(items)) => Err(format!("inputs has {} items, more than {MOST_ITEMS}", items.len())),
            Ok(other) => Err(format!("inputs must be a JSON array, not {}", short(&text(&other)))),
            Err(error) => Err(format!("inputs must be a JSON array, and {} is none: {error}", short(&inputs))),
        }
    }
}

fn short(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}
