//! Changes of a definition as the caller keeps it: what is filled in, replaced, taken away.

use super::{Invalid, KINDS, UNTITLED, invalid, is_key};
use serde_json::{Map, Value, json};

/// Fills in what the API shows of a definition that left it out. Nothing else is added: tools
/// compare what they sent with what they read.
pub fn fill_defaults(settings: &mut Map<String, Value>, queues: bool) {
    let mut put = |name: &str, value: Value| {
        settings.entry(name).or_insert(value);
    };
    put("name", UNTITLED.into());
    put("email_notifications", json!({}));
    put("max_concurrent_runs", 1.into());
    put("format", "MULTI_TASK".into());
    if queues {
        put("queue", json!({ "enabled": true }));
    }
    let in_git = settings.get("git_source").is_some_and(Value::is_object);
    for task in settings.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(task) = task.as_object_mut() else { continue };
        task.entry("run_if").or_insert_with(|| "ALL_SUCCESS".into());
        task.entry("timeout_seconds").or_insert_with(|| 0.into());
        task.entry("email_notifications").or_insert_with(|| json!({}));
        if let Some(notebook) = task.get_mut("notebook_task").and_then(Value::as_object_mut) {
            notebook.entry("source").or_insert_with(|| if in_git { "GIT" } else { "WORKSPACE" }.into());
        }
    }
}

/// Key of the only task of a run whose name cannot be one.
const ONLY_TASK: &str = "main";

/// The older form of a run that is submitted: what its only task does stands beside the name of the
/// run, which is the key of the task, too.
pub fn single_task(settings: &mut Map<String, Value>) {
    if settings.contains_key("tasks") || !KINDS.iter().any(|kind| settings.contains_key(*kind)) {
        return;
    }
    let of_task = ["existing_cluster_id", "new_cluster", "libraries", "environment_key"];
    let mut task: Map<String, Value> =
        KINDS.iter().chain(&of_task).filter_map(|name| settings.remove_entry(*name)).collect();
    let name = settings.get("run_name").and_then(Value::as_str).filter(|name| is_key(name));
    task.insert("task_key".to_owned(), name.unwrap_or(ONLY_TASK).into());
    settings.insert("tasks".to_owned(), json!([task]));
}

/// Arrays that are merged item by item, and the field that tells their items apart.
const KEYED: [(&str, &str); 4] = [
    ("tasks", "task_key"),
    ("job_clusters", "job_cluster_key"),
    ("environments", "environment_key"),
    ("parameters", "name"),
];

/// Changes the fields that are given; of arrays with keys the items that are given.
pub fn merge(settings: &mut Map<String, Value>, new: Map<String, Value>) {
    for (name, value) in new {
        let key = KEYED.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
        match (key, settings.get_mut(&name), value) {
            (Some(key), Some(Value::Array(old)), Value::Array(new)) => merge_items(old, new, key),
            (_, _, value) => drop(settings.insert(name, value)),
        }
    }
}

fn merge_items(old: &mut Vec<Value>, new: Vec<Value>, key: &str) {
    for item in new {
        match old.iter_mut().find(|known| known[key] == item[key]) {
            Some(known) => *known = item,
            None => old.push(item),
        }
    }
}

/// Takes fields away: top-level names, or `tasks/KEY` and the like for one item.
///
/// # Errors
/// When a path leads into something that has no keys.
pub fn remove(settings: &mut Map<String, Value>, fields: &[String]) -> Result<(), Invalid> {
    for field in fields {
        let Some((list, wanted)) = field.split_once('/') else {
            settings.remove(field);
            continue;
        };
        let key = KEYED.iter().find(|(name, _)| *name == list).map(|(_, key)| *key);
        let Some(key) = key else {
            return Err(invalid(format!(
                "fields_to_remove: {field:?} cannot be removed; name a field of the settings, or an item of tasks, \
                 job_clusters, environments or parameters as tasks/KEY"
            )));
        };
        if let Some(Value::Array(items)) = settings.get_mut(list) {
            items.retain(|item| item[key].as_str() != Some(wanted));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_touch_only_what_they_name() {
        let mut settings = json!({ "tasks": [condition("a"), condition("b")] });
        settings["tags"] = json!({ "x": "1" });
        let Value::Object(mut settings) = settings else { panic!() };
        let Value::Object(new) = json!({ "max_concurrent_runs": 9, "tasks": [condition("c"), { "task_key": "a" }] })
        else {
            panic!()
        };
        merge(&mut settings, new);
        let keys = |settings: &Map<String, Value>| -> Vec<String> {
            settings["tasks"].as_array().unwrap().iter().map(|t| t["task_key"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((keys(&settings), &settings["tags"]["x"]), (vec!["a".into(), "b".into(), "c".into()], &json!("1")));
        assert_eq!(settings["tasks"][0], json!({ "task_key": "a" }));
        remove(&mut settings, &["tags".to_owned(), "tasks/c".to_owned()]).unwrap();
        assert_eq!((keys(&settings).len(), settings.contains_key("tags")), (2, false));
        assert!(remove(&mut settings, &["queue/enabled".to_owned()]).is_err());
    }

    #[test]
    fn what_a_single_task_does_may_stand_beside_the_name() {
        let older = |name: &str| {
            let Value::Object(mut settings) = json!({ "run_name": name, "timeout_seconds": 9, "libraries": [], "notebook_task": { "notebook_path": "/a" } })
            else {
                panic!()
            };
            single_task(&mut settings);
            Value::from(settings)
        };
        assert_eq!(
            older("load"),
            json!({ "run_name": "load", "timeout_seconds": 9, "tasks":
                [{ "task_key": "load", "libraries": [], "notebook_task": { "notebook_path": "/a" } }] })
        );
        assert_eq!(older("load of monday")["tasks"][0]["task_key"], "main");
        let Value::Object(mut newer) = json!({ "tasks": [condition("a")], "libraries": [] }) else { panic!() };
        single_task(&mut newer);
        assert_eq!(newer["libraries"], json!([]));
    }

    fn condition(key: &str) -> Value {
        json!({ "task_key": key, "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } })
    }
}
