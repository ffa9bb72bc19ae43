//! What the references in the settings of a task stand for.

use super::active::Active;
use crate::references::{TIME_PARTS, Value, Values, hint, time_part};
use serde_json::Value as Json;

/// Everything that a task of a run can refer to.
pub(super) struct Known<'a> {
    pub run: &'a Active,
    /// Position of the task.
    pub task: usize,
    /// Its task run.
    pub task_run_id: i64,
    /// `attempt_number`.
    pub attempt: i64,
    /// The item of a for-each.
    pub input: Option<&'a Json>,
}

/// A JSON value as text: texts without quotes.
pub(super) fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Values for Known<'_> {
    fn value(&self, path: &[&str]) -> Value {
        match path {
            ["job", rest @ ..] => self.job(rest),
            ["task", rest @ ..] => self.task(rest),
            ["tasks", key, rest @ ..] => self.other_task(key, rest),
            ["input", rest @ ..] => self.input(rest),
            ["backfill", ..] => Value::None("this run is no backfill".to_owned()),
            _ => Value::Unknown(hint("", ["job", "task", "tasks", "input"])),
        }
    }
}

impl Known<'_> {
    fn job(&self, path: &[&str]) -> Value {
        let run = self.run;
        match path {
            ["id"] => Value::Is(run.job_id().to_string()),
            ["run_id"] => Value::Is(run.run_id().to_string()),
            ["name"] => Value::Is(run.name().to_owned()),
            ["repair_count"] => Value::Is(run.repair_count().to_string()),
            ["trigger", "type"] => Value::Is(run.cause().to_lowercase()),
            ["start_time", part] => match jiff::Timestamp::from_millisecond(run.start_ms()) {
                Ok(at) => time_part(at, part).map_or_else(|| Value::Unknown(hint(part, TIME_PARTS)), Value::Is),
                Err(_) => Value::None("the start of the run is not known".to_owned()),
            },
            ["parameters", name] => match run.parameter(name) {
                Some(value) => Value::Is(value),
                None => Value::Unknown(hint(name, run.parameter_names())),
            },
            [wrong, ..] => {
                let known = ["id", "name", "parameters", "repair_count", "run_id", "start_time", "trigger"];
                Value::Unknown(hint(wrong, known))
            }
            [] => Value::Unknown("name one of its members".to_owned()),
        }
    }

    fn task(&self, path: &[&str]) -> Value {
        match path {
            ["name"] => Value::Is(self.run.key(self.task).to_owned()),
            ["run_id"] => Value::Is(self.task_run_id.to_string()),
            ["execution_count"] => Value::Is((self.attempt + 1).to_string()),
            _ => Value::Unknown(hint(path.first().unwrap_or(&""), ["name", "run_id", "execution_count"])),
        }
    }

    fn other_task(&self, key: &str, path: &[&str]) -> Value {
        let Some(at) = self.run.position(key) else {
            return Value::Unknown(hint(key, self.run.keys()));
        };
        let Some(row) = self.run.current(at) else {
            return Value::None(format!("task {key:?} is not part of this run"));
        };
        let not_over = || Value::None(format!("task {key:?} is not over"));
        match path {
            ["run_id"] => Value::Is(row.row.task_run_id.to_string()),
            ["execution_count"] => Value::Is((row.row.attempt + 1).to_string()),
            ["result_state"] => {
                row.row.result.as_ref().map_or_else(not_over, |result| Value::Is(result.to_lowercase()))
            }
            ["error_code"] => row.row.code.clone().map_or_else(not_over, Value::Is),
            ["values", name] => match row.detail.values.get(*name) {
                Some(value) => Value::Is(text(value)),
                None => Value::None(format!("task {key:?} has set no value {name:?}")),
            },
            _ => {
                let known = ["result_state", "error_code", "values", "run_id", "execution_count"];
                Value::Unknown(hint(path.first().unwrap_or(&""), known))
            }
        }
    }

    fn input(&self, path: &[&str]) -> Value {
        let Some(input) = self.input else {
            return Value::None("only the task of a for-each has an input".to_owned());
        };
        match path {
            [] => Value::Is(text(input)),
            [field] => match input.get(*field) {
                Some(value) => Value::Is(text(value)),
                None => {
                    let fields = input.as_object().map(|fields| fields.keys().map(String::as_str).collect::<Vec<_>>());
                    Value::Unknown(hint(field, fields.unwrap_or_default()))
                }
            },
            _ => Value::Unknown("an input has fields, but none deeper".to_owned()),
        }
    }
}
