//! FAIL_CODE: the user's code threw; BAD_EXECUTOR: it only throws on some executors (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure};
use crate::words;
use model::RemedyKind;
use std::collections::{BTreeMap, BTreeSet};

/// Looks at exceptions of user code.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Code, code);
}

fn code(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let line = user_line(&text);
    let class = if f.class().is_empty() { "an error" } else { f.class() };
    let message = failure::shortened(&f.first.message);
    let said = if message.is_empty() || message == class { String::new() } else { format!(": {message}") };
    let fates = Fates::of(f);
    let draft = match fates.bad_executors() {
        Some(bad) => bad_executor(f, &fates, bad, &format!("{class}{said}")),
        None => {
            let at = line.as_ref().map(|l| format!(" at {l}")).unwrap_or_default();
            let draft = f.draft(format!("{class}{at}{}{said}", fates.times(f.attempts())));
            remedies(fates.verdict(draft), f, &fates, line.as_deref())
        }
    };
    let mut draft = draft.evidence("class", f.first.class.as_deref().unwrap_or_default(), "");
    if let Some(line) = &line {
        draft.finding.scope.source_line = Some(line.clone());
        draft = draft.evidence("source_line", line.clone(), "");
    }
    if let Some(class) = f.error_class() {
        draft = draft.evidence("error_class", class, "");
    }
    draft.evidence("executors", f.executors().len(), "executors")
}

/// What became of the tasks that failed in one way: each by its stage and index.
#[derive(Debug, Default)]
struct Fates {
    tasks: BTreeMap<(u32, u32), Fate>,
    /// Other executors that ran tasks of the same stages, none of which failed.
    sound: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Fate {
    failures: usize,
    failed_on: BTreeSet<String>,
    succeeded_on: BTreeSet<String>,
}

impl Fates {
    fn of(f: &Failure<'_>) -> Self {
        let mut fates = Self::default();
        for incident in f.cx.blame.all(f.trouble) {
            let Some((stage, index)) = incident.stage.map(|s| s.0).zip(incident.task_index) else { continue };
            let fate = fates.tasks.entry((stage, index)).or_default();
            fate.failures += 1;
            fate.failed_on.extend(incident.executor.as_deref().map(str::to_owned));
        }
        let stages: BTreeSet<u32> = fates.tasks.keys().map(|k| k.0).collect();
        for stage in f.cx.app.stages.iter().filter(|s| stages.contains(&s.id)) {
            for row in stage.tasks.successful() {
                let Some(executor) = f.cx.executor(stage.tasks.executor(row)) else { continue };
                fates.sound.insert(executor.id.to_string());
                if let Some(fate) = fates.tasks.get_mut(&(stage.id, stage.tasks.index(row))) {
                    fate.succeeded_on.insert(executor.id.to_string());
                }
            }
        }
        let failing = fates.failing();
        fates.sound.retain(|id| !failing.contains(id));
        fates
    }

    fn failing(&self) -> BTreeSet<String> {
        self.tasks.values().flat_map(|t| t.failed_on.iter().cloned()).collect()
    }

    /// Executors to blame: different tasks failed there, twice or more on each of them; each of the
    /// tasks succeeded, and none on one of these executors. Failures all over the cluster are the
    /// platform's.
    fn bad_executors(&self) -> Option<BTreeSet<String>> {
        let failing = self.failing();
        let elsewhere = |t: &Fate| !t.succeeded_on.is_empty() && t.succeeded_on.is_disjoint(&failing);
        let failures: usize = self.tasks.values().map(|t| t.failures).sum();
        let few = !failing.is_empty() && failing.len() <= self.sound.len() && failures >= 2 * failing.len();
        let told = self.tasks.len() >= 2 && few;
        (told && self.tasks.values().all(elsewhere)).then_some(failing)
    }

    /// Tasks that failed more than once and never succeeded.
    fn hopeless(&self) -> usize {
        self.tasks.values().filter(|t| t.failures > 1 && t.succeeded_on.is_empty()).count()
    }

    /// Whether a task failed on two executors and never succeeded: its data or the code, no node.
    fn deterministic(&self) -> bool {
        self.tasks.values().any(|t| t.failed_on.len() > 1 && t.succeeded_on.is_empty())
    }

    /// ` in seven attempts of two tasks`.
    fn times(&self, attempts: usize) -> String {
        match (attempts, self.tasks.len()) {
            (0 | 1, _) => String::new(),
            (n, 0) => format!(" in {}", words::count(n as u64, "attempt")),
            (n, tasks) => {
                format!(" in {} of {}", words::count(n as u64, "attempt"), words::count(tasks as u64, "task"))
            }
        }
    }

    fn verdict(&self, draft: Draft) -> Draft {
        let recovered = self.tasks.values().filter(|t| !t.succeeded_on.is_empty()).count();
        let draft = draft.evidence("tasks_that_failed", self.tasks.len(), "tasks");
        let draft = match recovered {
            0 => draft,
            n => draft.evidence("tasks_that_succeeded_later", n, "tasks"),
        };
        let says = if self.deterministic() { "true" } else { "unknown" };
        let draft = draft.evidence("deterministic", says, "");
        match self.deterministic() {
            true => draft
                .not("a bad node", "the same task failed on more than one executor and succeeded on none")
                .useless("more retries", "the same task fails wherever it runs"),
            false => draft,
        }
    }
}

fn remedies(draft: Draft, f: &Failure<'_>, fates: &Fates, line: Option<&str>) -> Draft {
    let place = line.map_or_else(|| "in the trace".to_owned(), |l| format!("at {l}"));
    let task = f
        .first
        .task_index
        .zip(f.first.stage)
        .map(|(index, (stage, _))| {
            let id = f.first.task_id.map(|id| format!(" (TID {id})")).unwrap_or_default();
            format!(": the input of task {index}{id} of stage {stage} shows it")
        })
        .unwrap_or_default();
    if let Some(draft) = known(draft.clone(), &f.text()) {
        return draft.confirm("the same input runs through");
    }
    let all_recovered = !fates.tasks.is_empty() && fates.tasks.values().all(|t| !t.succeeded_on.is_empty());
    let draft = match all_recovered {
        // The same input was read without the error.
        true => draft.remedy(
            RemedyKind::Code,
            format!("Find what differs between the attempts {place}: each task that failed succeeded when it ran again, so the error comes and goes with the time, the executor or another system"),
        ),
        false => draft.remedy(
            RemedyKind::Code,
            format!("Mend the code {place}, or handle the rows that it cannot take{task}"),
        ),
    };
    let draft = match fates.hopeless() {
        0 => draft,
        _ => draft.useless("more memory or executors", "the error is the code's own answer to its data"),
    };
    draft.confirm("the same input runs through")
}

/// Errors whose message names its own way out, which is not to change the code.
fn known(draft: Draft, text: &str) -> Option<Draft> {
    if text.contains("failOnDataLoss") || text.contains("KAFKA_DATA_LOSS") {
        return Some(
            draft
                .remedy(RemedyKind::Ops, "Find why the offsets are gone: the topic's retention is shorter than the time the query stood still, or the topic was made anew. Keep records longer, or run the query more often")
                .remedy(RemedyKind::Code, "Go on without the lost records only if that is acceptable; for a topic that was made anew take a new checkpoint")
                .snippet(".option(\"failOnDataLoss\", \"false\")")
                .useless("more retries", "the records do not come back"),
        );
    }
    // Of ANSI mode: the value is at fault, and each function has a form that gives NULL instead.
    let ansi = failure::find(
        r"\[(CAST_INVALID_INPUT|CAST_OVERFLOW|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|INVALID_ARRAY_INDEX|CANNOT_PARSE_TIMESTAMP)",
        text,
    );
    if let Some(class) = ansi {
        let (form, find) = match &class[1] {
            "CAST_INVALID_INPUT" | "CAST_OVERFLOW" => {
                ("try_cast(x AS type)", "WHERE x IS NOT NULL AND try_cast(x AS <type>) IS NULL")
            }
            "DIVIDE_BY_ZERO" => ("try_divide(a, b)", "WHERE b = 0"),
            "ARITHMETIC_OVERFLOW" => {
                ("try_add, try_subtract or try_multiply, or a wider type", "WHERE try_multiply(a, b) IS NULL")
            }
            "INVALID_ARRAY_INDEX" => ("get(array, index)", "WHERE size(array) <= index"),
            _ => ("try_to_timestamp(x, pattern)", "WHERE x IS NOT NULL AND try_to_timestamp(x, <pattern>) IS NULL"),
        };
        return Some(
            draft
                .remedy(RemedyKind::Sql, "Find the rows that hold such values, and mend them where they come from")
                .snippet(format!("SELECT * FROM <input> {find}"))
                .remedy(RemedyKind::Sql, format!("If they may be NULL in the result: {form}"))
                .useless("more retries, memory or executors", "the value is the same in every attempt"),
        );
    }
    let policy = failure::find(r#"(spark\.sql\.(?:legacy\.)?[\w.]*(?:Policy|RebaseMode\w*))"#, text)?;
    let setting = policy.get(1)?.as_str().trim_end_matches('.').to_owned();
    Some(
        draft
            .remedy(RemedyKind::Conf, "Choose how the older values are read: CORRECTED takes them as the new rules do (what does not fit becomes NULL or another date), LEGACY as the old version did; better still, give the pattern or type that the data has")
            .snippet(format!("SET {setting} = CORRECTED   -- or LEGACY"))
            .useless("more retries", "the same values fail wherever they are read"),
    )
}

/// Different tasks fail on the same executors and succeed elsewhere: not the code, not the data.
fn bad_executor(f: &Failure<'_>, fates: &Fates, bad: BTreeSet<String>, error: &str) -> Draft {
    let ids: Vec<String> = words::by_number(bad);
    let who = match ids.as_slice() {
        [one] => format!("executor {one} fails tasks that succeed"),
        more => format!("executors {} fail tasks that succeed", words::and(more)),
    };
    let sound: Vec<String> = words::by_number(fates.sound.clone());
    let tasks = words::count(fates.tasks.len() as u64, "task");
    let title = format!(
        "{who} elsewhere: {} of {tasks} failed there, and each of them succeeded on {}; {error}",
        words::count(f.attempts() as u64, "attempt"),
        if sound.len() == 1 { "the other one".to_owned() } else { "others".to_owned() },
    );
    let mut draft = f.draft(title);
    draft.finding.id = "BAD_EXECUTOR".to_owned();
    let excluded = excluded(f, &ids);
    let set = ["spark.excludeOnFailure.enabled", "spark.blacklist.enabled"];
    let leaves_out = set.iter().any(|key| f.cx.app.conf_bool(key, false));
    draft = draft
        .evidence("failing_executors", ids.clone(), "")
        .evidence("sound_executors", sound, "")
        .evidence("tasks_that_failed", fates.tasks.len(), "tasks")
        .evidence("tasks_that_succeeded_later", fates.tasks.len(), "tasks")
        .not("the code or its data", "every task that failed succeeded with the same input on another executor")
        .remedy(
            RemedyKind::Ops,
            format!(
                "Look at what differs on {}: stderr, libraries, and the disk and network of the host; then restart or replace what is broken",
                place(f, &ids)
            ),
        );
    draft = match (excluded.is_empty(), leaves_out) {
        (false, _) => draft.evidence("excluded_by_spark", excluded, ""),
        (true, true) => draft,
        (true, false) => draft
            .remedy(RemedyKind::Conf, "Let Spark leave out an executor on which tasks fail")
            .snippet("spark.excludeOnFailure.enabled true"),
    };
    draft.finding.scope.executor = ids.first().cloned();
    draft
        .useless("a change of the code", "it does its work on the other executors")
        .confirm("failed tasks on these executors: none")
}

/// Of these executors those that Spark itself left out (excluded, formerly blacklisted).
fn excluded(f: &Failure<'_>, ids: &[String]) -> Vec<String> {
    let out = f.cx.app.executors.iter().filter(|e| !e.exclusions.is_empty() && ids.iter().any(|id| **id == *e.id));
    words::by_number(out.map(|e| e.id.to_string()))
}

/// `executor 0 (host a)`, `executors 0 and 2 (host a)`, by the hosts that they are on.
fn place(f: &Failure<'_>, ids: &[String]) -> String {
    let of = f.cx.app.executors.iter().filter(|e| ids.iter().any(|id| **id == *e.id));
    let hosts: BTreeSet<String> = of.map(|e| e.host.to_string()).filter(|h| !h.is_empty()).collect();
    let what = if ids.len() == 1 { "executor" } else { "executors" };
    let who = format!("{what} {}", words::and(ids));
    match hosts.into_iter().collect::<Vec<_>>().as_slice() {
        [] => who,
        [host] => format!("{who} (host {host})"),
        more => format!("{who} (hosts {})", words::and(more)),
    }
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
    use super::*;

    /// Tasks with the executors on which they failed and on which they succeeded.
    fn fates(tasks: &[(&[&str], &[&str])], sound: &[&str]) -> Fates {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>();
        let fate = |(failed, done): &(&[&str], &[&str])| Fate {
            failures: failed.len(),
            failed_on: set(failed),
            succeeded_on: set(done),
        };
        let tasks = tasks.iter().enumerate().map(|(index, task)| ((0, index as u32), fate(task))).collect();
        Fates { tasks, sound: set(sound) }
    }

    #[test]
    fn an_executor_is_bad_when_different_tasks_fail_there_only() {
        let bad = |fates: &Fates| fates.bad_executors().map(|ids| ids.into_iter().collect::<Vec<_>>().join(" "));
        let cured = fates(&[(&["0"], &["1"]), (&["0"], &["1"]), (&["0", "0"], &["2"])], &["1", "2"]);
        assert_eq!((bad(&cured).as_deref(), cured.deterministic()), (Some("0"), false));
        // One task that fails wherever it runs is the code or its data.
        let everywhere = fates(&[(&["0", "1", "0", "1"], &[])], &["2"]);
        assert_eq!((bad(&everywhere), everywhere.deterministic()), (None, true));
        // Failures all over the cluster are nobody's in particular.
        let all_over = fates(&[(&["0"], &["1"]), (&["1"], &["2"]), (&["2"], &["0"])], &[]);
        assert_eq!((bad(&all_over), all_over.deterministic()), (None, false));
        assert_eq!(fates(&[(&["0"], &["1"])], &["1"]).times(1), "");
        assert_eq!(cured.times(4), " in four attempts of three tasks");
    }

    #[test]
    fn the_users_own_line() {
        let python = "Traceback\n  File \"/opt/pyspark/worker.py\", line 7, in main\n  File \"/app/rows.py\", line 41, in parse\n  File \"/x/site-packages/dateutil/p.py\", line 3, in f\nValueError";
        assert_eq!(user_line(python).as_deref(), Some("/app/rows.py:41"));
        let jvm = "\tat org.apache.spark.A.b(A.scala:1)\n\tat shop.Rows$.parse(Rows.scala:41)";
        assert_eq!(user_line(jvm).as_deref(), Some("shop.Rows$.parse(Rows.scala:41)"));
        assert_eq!(user_line("\tat java.lang.A(Unknown)"), None);
    }
}
