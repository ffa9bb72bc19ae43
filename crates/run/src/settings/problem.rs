//! What is wrong with a definition, and where.

use super::Invalid;
use crate::graph::GraphError;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// Something in a definition that may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands: a JSON Pointer (RFC 6901) into the definition. What is missing has the place
    /// of the object that it is missing in.
    pub at: String,
    /// The part of the text there that is meant; `None`: all of it.
    pub part: Option<String>,
    /// Whether the name of the field is meant, not its value.
    pub is_name: bool,
    /// What is wrong.
    pub why: Invalid,
}

/// Problems in the order in which they were found.
#[derive(Debug)]
pub(super) struct Problems {
    pub(super) found: Vec<Problem>,
    /// About how many are looked for: each may cost reading something again.
    most: usize,
}

impl Problems {
    pub(super) const fn at_most(most: usize) -> Self {
        Self { found: Vec::new(), most }
    }

    pub(super) fn into_first(self) -> Option<Problem> {
        self.found.into_iter().next()
    }

    /// Whether more is wanted than one that is found next.
    pub(super) const fn go_on(&self) -> bool {
        self.found.len() + 1 < self.most
    }

    /// A value that may not be.
    pub(super) fn value(&mut self, at: &str, why: impl Into<String>) {
        self.add(at, Invalid::Value(why.into()));
    }

    /// A value of another type.
    pub(super) fn malformed(&mut self, at: &str, why: impl Into<String>) {
        self.add(at, Invalid::Malformed(why.into()));
    }

    fn add(&mut self, at: &str, why: Invalid) {
        self.found.push(Problem { at: at.to_owned(), part: None, is_name: false, why });
    }

    /// Whether something has been told of this place, or of one that it is part of.
    pub(super) fn has_told(&self, at: &str) -> bool {
        let is_within =
            |place: &str| at.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // Of the whole there is always more to tell.
        self.found.iter().any(|problem| !problem.at.is_empty() && is_within(&problem.at))
    }
}

/// A name as part of a JSON Pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Where reading broke off.
pub(super) fn pointer(path: &Path) -> String {
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", escaped(key)),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(part).collect()
}

/// Takes a value away; of a list the whole, so that no other item changes its place. `None`: there
/// is nothing to take.
pub(super) fn take_out(from: &mut Value, at: &str) -> Option<()> {
    let (parent, name) = at.rsplit_once('/')?;
    match from.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&name.replace("~1", "/").replace("~0", "~")).map(drop),
        Value::Array(_) => take_out(from, parent),
        _ => None,
    }
}

/// Where the fault of a graph stands.
pub(super) fn of_graph(error: &GraphError, tasks: &[Value]) -> String {
    let position = |key: &str| tasks.iter().position(|task| task["task_key"] == *key);
    let dependency = |task: &str, on: &str| {
        let at = position(task)?;
        let nth = tasks[at]["depends_on"].as_array()?.iter().rposition(|known| known["task_key"] == *on)?;
        Some(format!("/tasks/{at}/depends_on/{nth}/task_key"))
    };
    let found = match error {
        GraphError::Empty => None,
        GraphError::Twice(key) => {
            let second = tasks.iter().rposition(|task| task["task_key"] == **key);
            second.map(|at| format!("/tasks/{at}/task_key"))
        }
        GraphError::NoCondition { task, on } => dependency(task, on).map(|at| at.replace("/task_key", "/outcome")),
        GraphError::Unknown { task, on } | GraphError::Repeated { task, on } => dependency(task, on),
        GraphError::Circle(keys) => match keys.as_slice() {
            [on, task, ..] => dependency(task, on),
            _ => None,
        },
    };
    found.unwrap_or_default()
}
