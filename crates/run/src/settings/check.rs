//! All that is wrong with a definition, for whoever writes it.

use super::problem::{Problem, Problems};
use super::{Invalid, Settings, kinds, shape};
use crate::references::{Names, ReferenceError, pieces, unknown};
use serde_json::Value;

/// About how many problems are looked for.
const MOST: usize = 200;

/// Everything that is wrong with a definition: what [`Settings::read`] refuses, fields that nobody
/// knows and would only be kept, and references that no run could resolve.
#[must_use]
pub fn problems(settings: &Value) -> Vec<Problem> {
    let mut problems = Problems::at_most(MOST);
    shape::check(settings, &mut problems);
    let mut read = Problems::at_most(MOST);
    let _ = Settings::read_all(settings, &mut read);
    // What is of another type has been told, and in fewer words.
    let more: Vec<Problem> = read.found.into_iter().filter(|problem| !problems.has_told(&problem.at)).collect();
    problems.found.extend(more);
    references(settings, &mut problems);
    problems.found
}

/// What the references of a definition can name.
struct Defined<'a>(&'a Value);

impl Defined<'_> {
    fn listed(&self, list: &str, name: &'static str) -> impl Iterator<Item = &str> {
        self.0[list].as_array().into_iter().flatten().filter_map(move |item| item[name].as_str())
    }
}

impl Names for Defined<'_> {
    fn parameters(&self) -> impl Iterator<Item = &str> {
        self.listed("parameters", "name")
    }

    fn tasks(&self) -> impl Iterator<Item = &str> {
        self.listed("tasks", "task_key")
    }
}

/// Kinds of work whose references this engine resolves. Others have references of their own.
const RESOLVED: [&str; 8] = [
    "condition_task",
    "for_each_task",
    "notebook_task",
    "python_wheel_task",
    "run_job_task",
    "spark_jar_task",
    "spark_python_task",
    "spark_submit_task",
];

fn references(settings: &Value, problems: &mut Problems) {
    let names = Defined(settings);
    for (nth, task) in settings["tasks"].as_array().into_iter().flatten().enumerate() {
        of_task(task, &format!("/tasks/{nth}"), false, &names, problems);
    }
}

/// The references of one task; `in_list`: it is done for each item of a list.
fn of_task(task: &Value, at: &str, in_list: bool, names: &Defined<'_>, problems: &mut Problems) {
    for kind in kinds(task).filter(|kind| RESOLVED.contains(kind)) {
        let at = format!("{at}/{kind}");
        match (kind, in_list) {
            ("for_each_task", false) => {
                of_value(&task[kind]["inputs"], &format!("{at}/inputs"), false, names, problems);
                of_task(&task[kind]["task"], &format!("{at}/task"), true, names, problems);
            }
            _ => of_value(&task[kind], &at, in_list, names, problems),
        }
    }
}

fn of_value(value: &Value, at: &str, in_list: bool, names: &Defined<'_>, problems: &mut Problems) {
    match value {
        Value::String(text) => {
            for (part, reference) in pieces(text).filter_map(|piece| piece.reference()) {
                if let Some(error) = wrong(reference, in_list, names) {
                    let why = Invalid::Value(error.to_string());
                    problems.found.push(Problem {
                        at: at.to_owned(),
                        part: Some(part.to_owned()),
                        is_name: false,
                        why,
                    });
                }
            }
        }
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.for_each(|(nth, item)| of_value(item, &format!("{at}/{nth}"), in_list, names, problems));
        }
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, value)| (format!("{at}/{}", super::problem::escaped(name)), value));
            each.for_each(|(at, value)| of_value(value, &at, in_list, names, problems));
        }
        _ => {}
    }
}

/// Why a reference can have no value in any run.
fn wrong(reference: &str, in_list: bool, names: &Defined<'_>) -> Option<ReferenceError> {
    let path: Vec<&str> = reference.split('.').collect();
    let reference = reference.to_owned();
    if path[0] == "input" && !in_list {
        let why = "only the task of a for-each has an input".to_owned();
        return Some(ReferenceError::NoValue { reference, why });
    }
    unknown(&path, names).map(|hint| ReferenceError::Unknown { reference, hint })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(settings: &Value) -> Vec<String> {
        let line = |problem: &Problem| {
            let part = problem.part.as_ref().map(|part| format!(" {part}")).unwrap_or_default();
            format!("{}{}{part}: {}", problem.at, if problem.is_name { " (name)" } else { "" }, problem.why)
        };
        problems(settings).iter().map(line).collect()
    }

    #[test]
    fn everything_wrong_is_told_with_its_place() {
        let settings = json!({
            "name": "night",
            "max_concurrent_run": 2,
            "timeout_seconds": "soon",
            "parameters": [{ "name": "day", "default": 1 }, { "name": "day" }],
            "schedule": { "quartz_cron_expression": "0 0 25 * * ?", "timezone_id": "Mars/Base" },
            "tasks": [
                { "task_key": "a", "depends_on": [{ "task_key": "c" }, { "task_key": "z" }], "run_if": "ALL_SUCESS",
                  "spark_python_task": { "python_file": 3, "parameters": ["x", 4, "{{job.parameters.dya}}"] } },
                { "task_key": "b", "depends_on": [{ "task_key": "c", "outcome": "true" }],
                  "condition_task": { "left": "1", "op": "EQUAL_TO" } },
                { "task_key": "c", "depends_on": [{ "task_key": "a" }], "max_retries": -2,
                  "for_each_task": { "inputs": "{{input}}", "concurrency": 0, "task": { "task_key": "each",
                    "spark_python_task": { "python_file": "/e.py", "parameters": ["{{input.x}}", "{{tasks.d.run_id}}"] } } } },
                { "task_key": "b", "notebook_task": { "notebook_path": "/n", "base_parameters": { "x": true } } },
                { "depends_on": [] }
            ]
        });
        expect_test::expect![[r#"
            /max_concurrent_run (name): there is no field "max_concurrent_run" here; did you mean max_concurrent_runs?
            /parameters/0/default: default must be a text, not the number 1
            /tasks/0/run_if: run_if cannot be "ALL_SUCESS"; did you mean ALL_SUCCESS?
            /tasks/0/spark_python_task/parameters/1: parameters must be a text, not the number 4
            /tasks/0/spark_python_task/python_file: python_file must be a text, not the number 3
            /tasks/3/notebook_task/base_parameters/x: x must be a text, not true, which is true or false; put it in quotes to make it a text
            /timeout_seconds: timeout_seconds must be a whole number, not the text "soon"
            /parameters/1/name: two parameters have the name "day"
            /schedule/quartz_cron_expression: quartz_cron_expression "0 0 25 * * ?": hours: 25 is not in 0-23
            /schedule/timezone_id: timezone_id "Mars/Base" is no time zone, such as Europe/Prague
            /tasks/1/condition_task: task "b": condition_task: missing field `right`
            /tasks/2/for_each_task/concurrency: task "c": for_each_task: concurrency must be between 1 and 100, not 0
            /tasks/4: tasks[4] has no task_key
            /tasks/4: tasks[4] does nothing; give it one of ai_function_task, ai_runtime_task, alert_task, clean_rooms_notebook_task, condition_task, dashboard_task, dbt_cloud_task, dbt_platform_task, dbt_task, for_each_task, gen_ai_compute_task, notebook_task, pipeline_task, power_bi_task, python_operator_task, python_wheel_task, run_job_task, spark_jar_task, spark_python_task, spark_submit_task, sql_task
            /tasks/3/task_key: two tasks have the key "b"; keys are unique in a job
            /tasks/0/depends_on/1/task_key: task "a" depends on "z", which is no task of this job
            /tasks/1/depends_on/0/outcome: task "b" asks for an outcome of "c", which is no condition
            /tasks/2/depends_on/0/task_key: tasks wait for each other in a circle: a -> c -> a
            /tasks/0/spark_python_task/parameters/2 {{job.parameters.dya}}: {{job.parameters.dya}} is no reference; did you mean day?
            /tasks/2/for_each_task/inputs {{input}}: {{input}} has no value: only the task of a for-each has an input
            /tasks/2/for_each_task/task/spark_python_task/parameters/1 {{tasks.d.run_id}}: {{tasks.d.run_id}} is no reference; there is a, b, b, c"#]].assert_eq(&found(&settings).join("\n"));
    }

    #[test]
    fn what_is_right_has_no_problem() {
        let settings = json!({
            "name": "night", "timeout_seconds": "60", "description": null,
            "parameters": [{ "name": "day", "default": "2026-11-30" }],
            "job_clusters": [{ "job_cluster_key": "small", "new_cluster": { "num_workers": 2, "brand_new": 1 } }],
            "tasks": [
                { "task_key": "load", "job_cluster_key": "small", "spark_python_task": { "python_file": "/l.py",
                  "parameters": ["{{job.parameters.day}}", "{{job.start_time.iso_date}}", "{{task.execution_count}}"] } },
                { "task_key": "report", "depends_on": [{ "task_key": "load" }], "sql_task": {
                  "warehouse_id": "w", "query": { "query_id": "q" }, "parameters": { "rows": "{{tasks.load.output.first_row.n}}" } } }
            ]
        });
        assert_eq!(found(&settings), Vec::<String>::new());
        assert!(Settings::read(&settings).is_ok());
    }
}
