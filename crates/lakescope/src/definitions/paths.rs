//! Relative paths of tasks, and names with wildcards.

use super::tree::{Fault, Node, Value};
use std::path::{Component, Path, PathBuf};

/// Where tasks name files, and whether the file has to be there.
const FILES: [(&[&str], bool); 5] = [
    (&["spark_python_task", "python_file"], true),
    (&["notebook_task", "notebook_path"], true),
    (&["sql_task", "file", "path"], true),
    (&["spark_jar_task", "jar_uri"], false),
    (&["dbt_task", "project_directory"], false),
];
/// Libraries that are files; they may be built later.
const LIBRARIES: [&str; 4] = ["egg", "jar", "requirements", "whl"];
/// Most files of one `include`.
const MOST_FILES: usize = 10_000;

/// Makes the relative paths of a job absolute, from the folder of the file that names them. Paths in
/// a Git source stay.
pub(super) fn resolve(job: &mut Node, faults: &mut Vec<Fault>) {
    let has_git = job.get("git_source").is_some();
    if let Some(Node { value: Value::List(tasks), .. }) = job.get_mut("tasks") {
        tasks.iter_mut().for_each(|task| of_task(task, has_git, faults));
    }
}

fn of_task(task: &mut Node, has_git: bool, faults: &mut Vec<Fault>) {
    for (path, must_be) in FILES {
        let source = task.get(path[0]).and_then(|kind| kind.get("source")).and_then(Node::text);
        if source.map_or(has_git, |source| source == "GIT") {
            continue;
        }
        let file = path.iter().try_fold(&mut *task, |node, name| node.get_mut(name));
        if let Some(file) = file {
            make_absolute(file, must_be, faults);
        }
    }
    if let Some(Node { value: Value::List(libraries), .. }) = task.get_mut("libraries") {
        for library in libraries {
            for kind in LIBRARIES {
                if let Some(file) = library.get_mut(kind) {
                    make_absolute(file, false, faults);
                }
            }
        }
    }
    if let Some(inner) = task.get_mut("for_each_task").and_then(|each| each.get_mut("task")) {
        of_task(inner, has_git, faults);
    }
}

fn make_absolute(file: &mut Node, must_be: bool, faults: &mut Vec<Fault>) {
    let Some(text) = file.text() else { return };
    // URLs, absolute paths, and what is known only when it runs.
    if text.is_empty() || text.starts_with('/') || text.contains(':') || text.contains("{{") || text.contains("${") {
        return;
    }
    let path = tidy(&file.place.source.folder.join(text));
    if must_be && !path.is_file() {
        let why = format!("there is no file {}; paths start from the folder of the file they stand in", path.display());
        faults.push(Fault { place: file.place.clone(), why });
    }
    file.value = Value::Scalar(path.display().to_string().into());
}

/// A path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(tidy.pop()),
            part => tidy.push(part),
        }
    }
    tidy
}

/// Files of a folder whose names are like a pattern: `*` and `?` stand for parts of a name, `**` for
/// folders. In their order.
pub(super) fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let start = if pattern.starts_with('/') { Path::new("/") } else { folder };
    let mut found = Vec::new();
    walk(start, &parts, &mut found);
    found.sort();
    found.dedup();
    found
}

fn walk(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) {
    let Some((first, rest)) = parts.split_first() else { return };
    if found.len() >= MOST_FILES {
        return;
    }
    if !first.contains(['*', '?']) {
        let path = folder.join(first);
        match rest {
            [] if path.is_file() => found.push(tidy(&path)),
            [] => {}
            rest => walk(&path, rest, found),
        }
        return;
    }
    if *first == "**" {
        walk(folder, rest, found);
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match *first {
            "**" if is_folder && !name.starts_with('.') => walk(&path, parts, found),
            "**" => {}
            first if !is_like(&name, first) => {}
            _ if rest.is_empty() && path.is_file() => found.push(tidy(&path)),
            _ if !rest.is_empty() => walk(&path, rest, found),
            _ => {}
        }
    }
}

/// Whether a name is like a pattern with `*` and `?`.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    // Which beginnings of the name the pattern so far stands for.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for c in pattern {
        match c {
            '*' => (0..name.len()).for_each(|at| reached[at + 1] |= reached[at]),
            c => {
                for at in (0..name.len()).rev() {
                    reached[at + 1] = reached[at] && (c == '?' || name[at] == c);
                }
                reached[0] = false;
            }
        }
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_patterns() {
        for (name, pattern, is) in [
            ("jobs.yml", "*.yml", true),
            ("jobs.yaml", "*.yml", false),
            ("a.yml", "?.yml", true),
            ("ab.yml", "?.yml", false),
            ("orders.job.yml", "*.*.yml", true),
            ("", "*", true),
            ("x", "", false),
            ("aab", "*ab", true),
        ] {
            assert_eq!(is_like(name, pattern), is, "{name} {pattern}");
        }
    }
}
