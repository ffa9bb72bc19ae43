//! FAIL_CODE: the user's code threw (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure};
use crate::words;
use model::RemedyKind;

/// Looks at exceptions of user code.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Code, code);
}

fn code(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let line = user_line(&text);
    let attempts = f.attempts();
    let executors = f.executors().len();
    let at = line.as_ref().map(|l| format!(" at {l}")).unwrap_or_default();
    let class = if f.class().is_empty() { "an error" } else { f.class() };
    let times = if attempts > 1 { format!(" on {}", words::count(attempts as u64, "attempt")) } else { String::new() };
    let message = failure::shortened(&f.first.message);
    let said = if message.is_empty() || message == class { String::new() } else { format!(": {message}") };
    let mut draft = f.draft(format!("{class}{at}{times}{said}")).evidence(
        "class",
        f.first.class.as_deref().unwrap_or_default(),
        "",
    );
    if let Some(line) = &line {
        draft.finding.scope.source_line = Some(line.clone());
        draft = draft.evidence("source_line", line.clone(), "");
    }
    if let Some(class) = f.error_class() {
        draft = draft.evidence("error_class", class, "");
    }
    draft = draft.evidence("executors", executors, "executors");
    // Several failures of few tasks on more than one executor: the data or the code, not a node.
    let deterministic = attempts > 1 && executors > 1 && f.indexes() < attempts;
    draft = draft.evidence("deterministic", if deterministic { "true" } else { "unknown" }, "");
    if deterministic {
        draft = draft
            .not("a bad node", format!("{} failed on {executors} executors", words::count(f.indexes() as u64, "task")))
            .useless("more retries", "the same task fails wherever it runs");
    }
    remedies(draft, f, line.as_deref())
}

fn remedies(draft: Draft, f: &Failure<'_>, line: Option<&str>) -> Draft {
    let place = line.map_or_else(|| "in the trace".to_owned(), |l| format!("at {l}"));
    let task = f
        .first
        .task_index
        .zip(f.first.stage)
        .map(|(index, (stage, _))| format!(": the input of task {index} of stage {stage} shows it"))
        .unwrap_or_default();
    draft
        .remedy(RemedyKind::Code, format!("Mend the code {place}, or handle the rows that it cannot take{task}"))
        .useless("more memory or executors", "the error is the code's own answer to its data")
        .confirm("the same input runs through")
}

/// Packages whose frames are not the user's.
const FOREIGN: [&str; 12] = [
    "org.apache.",
    "java.",
    "javax.",
    "scala.",
    "sun.",
    "jdk.",
    "py4j.",
    "com.databricks.",
    "io.delta.",
    "com.esotericsoftware.",
    "io.netty.",
    "org.sparkproject.",
];

/// The user's line: the innermost Python frame outside Spark and installed packages, else the
/// first JVM frame outside Spark and the runtimes.
#[must_use]
pub fn user_line(text: &str) -> Option<String> {
    let python = text.lines().filter_map(|line| {
        let (path, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(format!("{path}:{number}"))
    });
    let own = |l: &String| {
        !["pyspark", "site-packages", "py4j", "/lib/python", "<frozen", "dist-packages"].iter().any(|p| l.contains(p))
    };
    python.take(500).filter(own).last().or_else(|| {
        let frames = text.lines().map(str::trim_start).filter_map(|l| l.strip_prefix("at "));
        frames.take(500).find(|l| !FOREIGN.iter().any(|p| l.starts_with(p)) && l.contains(':')).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::user_line;

    #[test]
    fn the_users_own_line() {
        let python = "Traceback\n  File \"/opt/pyspark/worker.py\", line 7, in main\n  File \"/app/rows.py\", line 41, in parse\n  File \"/x/site-packages/dateutil/p.py\", line 3, in f\nValueError";
        assert_eq!(user_line(python).as_deref(), Some("/app/rows.py:41"));
        let jvm = "\tat org.apache.spark.A.b(A.scala:1)\n\tat shop.Rows$.parse(Rows.scala:41)";
        assert_eq!(user_line(jvm).as_deref(), Some("shop.Rows$.parse(Rows.scala:41)"));
        assert_eq!(user_line("\tat java.lang.A(Unknown)"), None);
    }
}
