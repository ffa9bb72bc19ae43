//! What the references in the settings of a task stand for.

use super::active::Active;
use crate::references::{Names, Value, Values, hint, time_part, unknown};
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

impl Names for Known<'_> {
    fn parameters(&self) -> impl Iterator<Item = &str> {
        self.run.parameter_names()
    }

    fn tasks(&self) -> impl Iterator<Item = &str> {
        self.run.keys()
    }
}

impl Values for Known<'_> {
    fn value(&self, path: &[&str]) -> Value {
        if let Some(hint) = unknown(path, self) {
            return Value::Unknown(hint);
        }
        match path {
            ["job", rest @ ..] => self.job(rest),
            ["task", rest @ ..] => self.task(rest),
            ["tasks", key, rest @ ..] => self.other_task(key, rest),
            ["input", rest @ ..] => self.input(rest),
            _ => Value::None("this run is no backfill".to_owned()),
        }
    }
}

/// A value that is known by name, or why it is not there now.
fn or_none(value: Option<String>, why: impl FnOnce() -> String) -> Value {
    value.map_or_else(|| Value::None(why()), Value::Is)
}

impl Known<'_> {
    fn job(&self, path: &[&str]) -> Value {
        let run = self.run;
        let value = match path {
            ["id"] => Some(run.job_id().to_string()),
            ["run_id"] => Some(run.run_id().to_string()),
            ["name"] => Some(run.name().to_owned()),
            ["repair_count"] => Some(run.repair_count().to_string()),
            ["trigger", _] => Some(run.cause().to_lowercase()),
            ["start_time", part] => {
                let at = jiff::Timestamp::from_millisecond(run.start_ms()).ok();
                at.and_then(|at| time_part(at, part))
            }
            ["parameters", name] => run.parameter(name),
            _ => None,
        };
        or_none(value, || "the run does not know it".to_owned())
    }

    fn task(&self, path: &[&str]) -> Value {
        Value::Is(match path {
            ["name"] => self.run.key(self.task).to_owned(),
            ["run_id"] => self.task_run_id.to_string(),
            _ => (self.attempt + 1).to_string(),
        })
    }

    fn other_task(&self, key: &str, path: &[&str]) -> Value {
        let Some(row) = self.run.position(key).and_then(|at| self.run.current(at)) else {
            return Value::None(format!("task {key:?} is not part of this run"));
        };
        let not_over = || format!("task {key:?} is not over");
        match path {
            ["run_id"] => Value::Is(row.row.task_run_id.to_string()),
            ["execution_count"] => Value::Is((row.row.attempt + 1).to_string()),
            ["result_state"] => or_none(row.row.result.as_ref().map(|result| result.to_lowercase()), not_over),
            ["error_code"] => or_none(row.row.code.clone(), not_over),
            [_, name] => {
                or_none(row.detail.values.get(*name).map(text), || format!("task {key:?} has set no value {name:?}"))
            }
            _ => Value::None(not_over()),
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
