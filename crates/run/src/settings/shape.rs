//! The fields of a definition and their types, as the Jobs API describes them: so that a misspelt
//! one is found. The engine itself reads what it knows and keeps the rest.

use super::problem::{Problem, Problems, escaped};
use super::{Invalid, raw::whole};
use crate::references::hint;
use Type::{Any, Flag, List, Of, One, TaskOfEach, Text, Texts, Whole};
use serde_json::Value;

/// What a field may be. `null` is what is not there.
enum Type {
    /// Not looked at: what belongs to clusters, notifications by webhook and the like.
    Any,
    Text,
    Whole,
    Flag,
    /// An object of texts.
    Texts,
    One(&'static [&'static str]),
    List(&'static Type),
    Of(&'static Shape),
    /// A task inside of a task: a table cannot hold itself.
    TaskOfEach,
}

type Shape = [(&'static str, Type)];

static JOB: &Shape = &[
    ("access_control_list", Any),
    ("budget_policy_id", Text),
    ("continuous", Of(CONTINUOUS)),
    ("deployment", Of(DEPLOYMENT)),
    ("description", Text),
    ("duration_target", Text),
    ("edit_mode", One(&["EDITABLE", "UI_LOCKED"])),
    ("email_notifications", Of(EMAIL)),
    ("environment_variables", Any),
    ("environments", List(&Of(ENVIRONMENT))),
    ("format", One(&["MULTI_TASK", "SINGLE_TASK"])),
    ("git_source", Of(GIT)),
    ("health", Of(HEALTH)),
    ("job_clusters", List(&Of(JOB_CLUSTER))),
    ("max_concurrent_runs", Whole),
    ("name", Text),
    ("notification_settings", Of(NOTIFICATIONS)),
    ("parameters", List(&Of(PARAMETER))),
    ("parent_path", Text),
    ("performance_target", One(&["PERFORMANCE_OPTIMIZED", "STANDARD"])),
    ("queue", Of(&[("enabled", Flag)])),
    ("run_as", Of(&[("group_name", Text), ("service_principal_name", Text), ("user_name", Text)])),
    ("schedule", Of(SCHEDULE)),
    ("tags", Texts),
    ("tasks", List(&Of(TASK))),
    ("timeout_seconds", Whole),
    ("trigger", Of(TRIGGER)),
    ("triggers", Any),
    ("usage_policy_id", Text),
    ("webhook_notifications", Any),
];

static TASK: &Shape = &[
    ("ai_function_task", Any),
    ("ai_runtime_task", Any),
    ("alert_task", Any),
    ("clean_rooms_notebook_task", Any),
    ("compute", Any),
    ("condition_task", Of(CONDITION)),
    ("dashboard_task", Any),
    ("dbt_cloud_task", Any),
    ("dbt_platform_task", Any),
    ("dbt_task", Of(DBT)),
    ("depends_on", List(&Of(&[("outcome", One(&["true", "false"])), ("task_key", Text)]))),
    ("description", Text),
    ("disable_auto_optimization", Flag),
    ("disabled", Flag),
    ("email_notifications", Of(EMAIL)),
    ("environment_key", Text),
    ("environment_variables_key", Text),
    ("existing_cluster_id", Text),
    ("for_each_task", Of(FOR_EACH)),
    ("gen_ai_compute_task", Any),
    ("health", Of(HEALTH)),
    ("job_cluster_key", Text),
    ("libraries", List(&Any)),
    ("max_retries", Whole),
    ("min_retry_interval_millis", Whole),
    ("new_cluster", Any),
    ("notebook_task", Of(NOTEBOOK)),
    ("notification_settings", Of(NOTIFICATIONS)),
    ("pipeline_task", Of(PIPELINE)),
    ("power_bi_task", Any),
    ("python_operator_task", Any),
    ("python_wheel_task", Of(WHEEL)),
    ("retry_on_timeout", Flag),
    ("run_if", One(RUN_IF)),
    ("run_job_task", Of(RUN_JOB)),
    ("spark_jar_task", Of(JAR)),
    ("spark_python_task", Of(PYTHON)),
    ("spark_submit_task", Of(&[("parameters", List(&Text))])),
    ("sql_task", Of(SQL)),
    ("task_key", Text),
    ("timeout_seconds", Whole),
    ("webhook_notifications", Any),
];

static RUN_IF: &[&str] =
    &["ALL_SUCCESS", "AT_LEAST_ONE_SUCCESS", "NONE_FAILED", "ALL_DONE", "AT_LEAST_ONE_FAILED", "ALL_FAILED"];
static OPERATOR: &[&str] =
    &["EQUAL_TO", "NOT_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL"];
static CONDITION: &Shape = &[("left", Text), ("op", One(OPERATOR)), ("right", Text)];
static DBT: &Shape = &[
    ("catalog", Text),
    ("commands", List(&Text)),
    ("profiles_directory", Text),
    ("project_directory", Text),
    ("schema", Text),
    ("source", SOURCE),
    ("warehouse_id", Text),
];
static FOR_EACH: &Shape = &[("concurrency", Whole), ("inputs", Text), ("task", TaskOfEach)];
static JAR: &Shape =
    &[("jar_uri", Text), ("main_class_name", Text), ("parameters", List(&Text)), ("run_as_repl", Flag)];
static NOTEBOOK: &Shape =
    &[("base_parameters", Texts), ("notebook_path", Text), ("source", SOURCE), ("warehouse_id", Text)];
static PIPELINE: &Shape = &[
    ("full_refresh", Flag),
    ("full_refresh_selection", List(&Text)),
    ("parameters", Texts),
    ("pipeline_id", Text),
    ("refresh_flow_selection", List(&Text)),
    ("refresh_selection", List(&Text)),
    ("reset_checkpoint_selection", List(&Text)),
];
static PYTHON: &Shape = &[("parameters", List(&Text)), ("python_file", Text), ("source", SOURCE)];
static RUN_JOB: &Shape = &[
    ("dbt_commands", List(&Text)),
    ("jar_params", List(&Text)),
    ("job_id", Whole),
    ("job_parameters", Texts),
    ("notebook_params", Texts),
    ("pipeline_params", Any),
    ("python_named_params", Texts),
    ("python_params", List(&Text)),
    ("spark_submit_params", List(&Text)),
    ("sql_params", Texts),
];
static SQL: &Shape = &[
    ("alert", Any),
    ("dashboard", Any),
    ("file", Of(&[("path", Text), ("source", SOURCE)])),
    ("parameters", Texts),
    ("query", Of(&[("query_id", Text)])),
    ("warehouse_id", Text),
];
static WHEEL: &Shape =
    &[("entry_point", Text), ("named_parameters", Texts), ("package_name", Text), ("parameters", List(&Text))];

const SOURCE: Type = One(&["GIT", "WORKSPACE"]);
const PAUSE: Type = One(&["PAUSED", "UNPAUSED"]);
static CONTINUOUS: &Shape =
    &[("maintenance_window", Any), ("pause_status", PAUSE), ("task_retry_mode", One(&["NEVER", "ON_FAILURE"]))];
static SCHEDULE: &Shape =
    &[("pause_status", PAUSE), ("quartz_cron_expression", Text), ("sql_condition", Any), ("timezone_id", Text)];
static TRIGGER: &Shape = &[
    ("file_arrival", Of(FILE_ARRIVAL)),
    ("job_completion", Of(JOB_COMPLETION)),
    ("model", Any),
    ("pause_status", PAUSE),
    ("periodic", Of(&[("interval", Whole), ("unit", One(&["MINUTES", "HOURS", "DAYS", "WEEKS"]))])),
    ("sql_condition", Any),
    ("table_update", Of(TABLE_UPDATE)),
];
static FILE_ARRIVAL: &Shape =
    &[("min_time_between_triggers_seconds", Whole), ("url", Text), ("wait_after_last_change_seconds", Whole)];
static JOB_COMPLETION: &Shape = &[
    ("if_status", One(&["DONE", "FAILED", "SUCCESS"])),
    ("jobs", List(&Of(&[("job_id", Whole), ("workspace_id", Whole)]))),
];
static TABLE_UPDATE: &Shape = &[
    ("condition", One(&["ALL_UPDATED", "ANY_UPDATED"])),
    ("min_time_between_triggers_seconds", Whole),
    ("table_names", List(&Text)),
    ("wait_after_last_change_seconds", Whole),
];

static DEPLOYMENT: &Shape = &[
    ("deployment_id", Text),
    ("kind", One(&["BUNDLE", "SYSTEM_MANAGED"])),
    ("metadata_file_path", Text),
    ("version_id", Text),
];
static EMAIL: &Shape = &[
    ("no_alert_for_skipped_runs", Flag),
    ("on_duration_warning_threshold_exceeded", List(&Text)),
    ("on_failure", List(&Text)),
    ("on_start", List(&Text)),
    ("on_streaming_backlog_exceeded", List(&Text)),
    ("on_success", List(&Text)),
];
static ENVIRONMENT: &Shape = &[("environment_key", Text), ("spec", Any)];
static GIT: &Shape = &[
    ("git_branch", Text),
    ("git_commit", Text),
    ("git_provider", Any),
    ("git_snapshot", Any),
    ("git_tag", Text),
    ("git_url", Text),
    ("job_source", Any),
    ("sparse_checkout", Any),
];
static HEALTH: &Shape = &[("rules", List(&Of(&[("metric", Text), ("op", One(&["GREATER_THAN"])), ("value", Whole)])))];
static JOB_CLUSTER: &Shape =
    &[("job_cluster_key", Text), ("new_cluster", Any), ("serverless_compute", Any), ("serverless_compute_id", Text)];
static NOTIFICATIONS: &Shape =
    &[("alert_on_last_attempt", Flag), ("no_alert_for_canceled_runs", Flag), ("no_alert_for_skipped_runs", Flag)];
static PARAMETER: &Shape = &[("default", Text), ("name", Text)];

/// Tells fields that nobody knows, and values of another type than theirs.
pub(super) fn check(settings: &Value, problems: &mut Problems) {
    if settings.is_object() {
        fields(settings, "", JOB, problems);
    }
}

/// Makes numbers of those that came as texts, as some clients send them: others read only numbers.
pub fn numbers(settings: &mut Value) {
    each_field(settings, JOB);
}

fn each_field(object: &mut Value, shape: &Shape) {
    for (name, value) in object.as_object_mut().into_iter().flatten() {
        if let Some((_, kind)) = shape.iter().find(|(known, _)| known == name) {
            number(value, kind);
        }
    }
}

fn number(value: &mut Value, kind: &Type) {
    match kind {
        Whole => {
            if let Some(number) = whole(value) {
                *value = number.into();
            }
        }
        List(of) => value.as_array_mut().into_iter().flatten().for_each(|item| number(item, of)),
        Of(shape) => each_field(value, shape),
        TaskOfEach => each_field(value, TASK),
        Any | Text | Flag | Texts | One(_) => {}
    }
}

fn fields(object: &Value, at: &str, shape: &Shape, problems: &mut Problems) {
    for (name, value) in object.as_object().into_iter().flatten() {
        let at = format!("{at}/{}", escaped(name));
        match shape.iter().find(|(known, _)| known == name) {
            Some((_, kind)) => field(name, value, &at, kind, problems),
            None => {
                let why =
                    format!("there is no field {name:?} here; {}", hint(name, shape.iter().map(|(name, _)| *name)));
                problems.found.push(Problem { at, part: None, is_name: true, why: Invalid::Value(why) });
            }
        }
    }
}

fn field(name: &str, value: &Value, at: &str, kind: &Type, problems: &mut Problems) {
    let kind = if matches!(kind, TaskOfEach) { &Of(TASK) } else { kind };
    let wanted = match kind {
        _ if value.is_null() => return,
        Any => return,
        Text if value.is_string() => return,
        Text => "a text",
        Whole if whole(value).is_some() => return,
        Whole => "a whole number",
        Flag if value.is_boolean() => return,
        Flag => "true or false",
        Texts => match value.as_object() {
            Some(texts) => {
                let each = texts.iter().map(|(name, value)| (name, value, format!("{at}/{}", escaped(name))));
                return each.for_each(|(name, value, at)| field(name, value, &at, &Text, problems));
            }
            None => "an object of texts",
        },
        One(words) => return one(name, value, at, words, problems),
        List(of) => match value.as_array() {
            Some(items) => {
                let each = items.iter().enumerate();
                return each.for_each(|(nth, item)| field(name, item, &format!("{at}/{nth}"), of, problems));
            }
            None => "a list",
        },
        Of(shape) if value.is_object() => return fields(value, at, shape, problems),
        Of(_) | TaskOfEach => "an object",
    };
    problems.malformed(at, format!("{name} must be {wanted}, not {}", shown(value)));
}

fn one(name: &str, value: &Value, at: &str, words: &[&str], problems: &mut Problems) {
    match value.as_str() {
        Some(word) if words.contains(&word) => {}
        Some(word) => {
            problems.value(at, format!("{name} cannot be {word:?}; {}", hint(word, words.iter().copied())));
        }
        None => problems.malformed(at, format!("{name} must be a text, not {}", shown(value))),
    }
}

/// What a value is, for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) => format!("{value}, which is true or false; put it in quotes to make it a text"),
        Value::Number(_) => format!("the number {value}"),
        Value::String(text) => format!("the text {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
