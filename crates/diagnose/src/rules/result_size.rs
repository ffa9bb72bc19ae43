//! FAIL_RESULT_SIZE: results larger than `spark.driver.maxResultSize` (section 4.3).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any, size};
use crate::words;
use model::{Confidence, Operator, RemedyKind};

/// Frames and statements of a write: its tasks return commit messages, not rows.
const WRITERS: [&str; 12] = [
    "FileFormatWriter",
    "InsertInto",
    "INSERT INTO",
    "INSERT OVERWRITE",
    "WriteFiles",
    "V2TableWrite",
    "WriteToDataSourceV2",
    "SaveIntoDataSource",
    "CreateDataSourceTableAsSelect",
    "TransactionalWrite",
    "DataFrameWriter",
    "CREATE TABLE AS",
];

/// Looks at results that were too large.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::ResultSize, result_size);
}

/// `Total size of serialized results of N tasks (X) is bigger than spark.driver.maxResultSize (Y)`.
struct Figures {
    tasks: i64,
    total: i64,
    limit: i64,
    words: String,
}

fn figures(text: &str) -> Option<Figures> {
    let found = find(
        r"serialized results of (\d+) tasks? \(([\d.]+ ?[KMGT]?i?B)\) is bigger than (?:spark\.driver\.maxResultSize|local maxResultSize|maxResultSize)?[ =]?\(?([\d.]+ ?[KMGT]?i?B)",
        text,
    )?;
    let noun = if &found[1] == "1" { "task" } else { "tasks" };
    let words = format!("{} {noun} returned {}, the limit is {}", &found[1], &found[2], &found[3]);
    let (tasks, total, limit) = (found[1].parse().ok()?, failure::bytes(&found[2])?, failure::bytes(&found[3])?);
    Some(Figures { tasks, total, limit, words })
}

fn result_size(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let Some(figures) = figures(&text) else {
        let draft =
            f.draft("task results were larger than spark.driver.maxResultSize").evidence("cause", "collect", "");
        return collected(draft.sure(Confidence::Medium, "the line with the sizes is missing"));
    };
    let per_task = figures.total / figures.tasks.max(1);
    let writer = writes(f, &text);
    let broadcast = broadcasts(f, &text);
    let cause = match (broadcast, writer && per_task < 1 << 20) {
        (true, _) => "broadcast",
        (_, true) => "task_metadata",
        _ => "collect",
    };
    let what = match cause {
        "broadcast" => "a table was collected for a broadcast",
        "task_metadata" => "commit metadata of too many write tasks",
        _ => "rows were collected to the driver",
    };
    let draft = f
        .draft(format!("{what}: {} ({} a task)", figures.words, size(per_task)))
        .evidence("cause", cause, "")
        .evidence("tasks", figures.tasks, "tasks")
        .evidence("result_bytes", figures.total, "bytes")
        .over(figures.limit as f64)
        .evidence("limit_bytes", figures.limit, "bytes")
        .evidence("bytes_per_task", per_task, "bytes")
        .evidence("writer_in_stack", if writer { "true" } else { "false" }, "");
    let draft = match cause {
        "broadcast" => draft.explained_by(&["BROADCAST_TOO_LARGE"]).remedy(
            RemedyKind::Sql,
            "Do not broadcast this table: remove the hint, or set spark.sql.autoBroadcastJoinThreshold=-1 for this query",
        ),
        "task_metadata" => metadata(f, draft, &figures),
        _ => collected(draft),
    };
    draft
        .remedy(
            RemedyKind::Conf,
            "Only when the results must come to the driver and its heap has room: a higher spark.driver.maxResultSize",
        )
        .useless("repartition before the action", "the same bytes arrive at the driver in other pieces")
        .confirm("size of the results that the stage returns")
}

fn writes(f: &Failure<'_>, text: &str) -> bool {
    let plan = f.quoted_sql().map(model::SqlExecution::plan);
    let in_plan = plan.is_some_and(|p| p.nodes.iter().any(|n| matches!(n.op, Operator::Write { .. })));
    in_plan || has_any(text, &WRITERS) || has_any(f.pasted_text(), &WRITERS)
}

/// Its job collects a side of a join: a trace shows the exchange, a log the scope of the stage's
/// RDDs, the job's description (before 3.5), or the thread that SQL uses for broadcasts.
fn broadcasts(f: &Failure<'_>, text: &str) -> bool {
    let said = |i: &model::Incident| {
        let job = i.job.and_then(|id| f.cx.app.job(id));
        let words = job.into_iter().flat_map(|j| [&j.description, &j.group].into_iter().flatten().chain(&j.tags));
        words.into_iter().any(|w| w.contains("broadcast exchange"))
    };
    let of_stage = |i: &model::Incident| {
        let stage = i.stage.and_then(|(id, attempt)| f.cx.app.stage(id, attempt));
        stage.is_some_and(|s| {
            let scoped = s.rdds.iter().any(|r| r.scope.as_deref().is_some_and(|n| n.contains("BroadcastExchange")));
            scoped || s.details.contains("withThreadLocalCaptured") && has_broadcast(f)
        })
    };
    has_any(text, &["BroadcastExchange", "broadcast exchange"])
        || f.cx.blame.all(f.trouble).any(|i| said(i) || of_stage(i))
}

fn has_broadcast(f: &Failure<'_>) -> bool {
    let plan = f.quoted_sql().map(model::SqlExecution::plan);
    plan.is_some_and(|p| p.nodes.iter().any(|n| matches!(n.op, Operator::BroadcastExchange { .. })))
}

fn metadata(f: &Failure<'_>, draft: Draft, figures: &Figures) -> Draft {
    let fitting = (figures.tasks as f64 * figures.limit as f64 * 0.5 / figures.total.max(1) as f64) as i64;
    let app = f.cx.app;
    let named = [
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
        "spark.sql.shuffle.partitions",
        "spark.default.parallelism",
    ];
    let (key, now) = named.iter().find_map(|k| Some((*k, app.conf(k)?))).unwrap_or((named[1], "200"));
    let lower = now.parse::<i64>().ok().map(|n| (n as f64 * fitting as f64 / figures.tasks.max(1) as f64) as i64);
    let value = lower.filter(|&n| n > 0).map(|n| format!(", for example {n}")).unwrap_or_default();
    draft
        .not(
            "collect or toPandas",
            format!(
                "the stack writes, and {} a task is far too little for rows",
                size(figures.total / figures.tasks.max(1))
            ),
        )
        .evidence("tasks_that_fit", fitting, "tasks")
        .remedy(RemedyKind::Conf, format!("Fewer tasks, at most about {fitting}: lower {key} ({now}){value}"))
        .computed(format!("{} × limit × 0.5 / result size", words::count(figures.tasks.unsigned_abs(), "task")))
        .remedy(RemedyKind::Sql, "Split the statement, or write in steps: each branch of the UNION adds its own tasks")
        .useless("removing collect", "nothing is collected: the bytes are what each write task reports back")
}

fn collected(draft: Draft) -> Draft {
    draft
        .not("task metadata", "each task returns more than a commit message")
        .remedy(RemedyKind::Code, "Do not collect the rows: write them with df.write, or aggregate and limit before collect, toPandas or display")
        .snippet("df.write.saveAsTable(…)")
}

impl Failure<'_> {
    fn quoted_sql(&self) -> Option<&model::SqlExecution> {
        self.cx.blame.all(self.trouble).find_map(|i| {
            let of_job = i.job.and_then(|id| self.cx.app.job(id)).and_then(|j| j.sql);
            self.cx.app.sql(i.sql.or(of_job)?)
        })
    }
}
