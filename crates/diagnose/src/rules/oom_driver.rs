//! OOM_DRIVER: the driver ran out of memory (section 4.3).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, has_any};
use model::RemedyKind;

/// Looks at memory errors of the driver.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::DriverHeap, driver);
}

#[derive(Clone, Copy)]
enum Filling {
    Collect,
    Broadcast,
    Planning,
    Tasks,
    Unknown,
}

fn filling(text: &str) -> Filling {
    if has_any(text, &["broadcast-exchange", "BroadcastExchangeExec", "TorrentBroadcast", "HashedRelation"]) {
        Filling::Broadcast
    } else if has_any(
        text,
        &[
            "collect",
            "toPandas",
            "toLocalIterator",
            "takeAsList",
            "Dataset.take",
            "display(",
            "TaskResultGetter",
            "task-result-getter",
        ],
    ) {
        Filling::Collect
    } else if has_any(
        text,
        &[
            "InMemoryFileIndex",
            "listLeafFiles",
            "FileIndex",
            "PartitioningAwareFileIndex",
            "Snapshot",
            "treeString",
            "QueryPlan",
            "Optimizer",
            "RuleExecutor",
        ],
    ) {
        Filling::Planning
    } else if has_any(
        text,
        &[
            "dag-scheduler-event-loop",
            "DAGScheduler",
            "MapOutputTracker",
            "map-output-dispatcher",
            "spark-listener",
            "AppStatusListener",
            "ElementTrackingStore",
        ],
    ) {
        Filling::Tasks
    } else {
        Filling::Unknown
    }
}

fn driver(f: &Failure<'_>) -> Draft {
    let text = [f.text(), f.pasted_text().to_owned()].join("\n");
    let filling = filling(&text);
    let (cause, what) = match filling {
        Filling::Collect => ("collect", "rows were pulled to the driver"),
        Filling::Broadcast => ("broadcast", "a table was collected and built for a broadcast"),
        Filling::Planning => ("planning", "planning held the file listing or a huge plan"),
        Filling::Tasks => ("task_metadata", "it kept the state of too many tasks"),
        Filling::Unknown => ("unknown", "what filled it is not in the trace"),
    };
    let draft = f
        .draft(format!("the driver ran out of memory: {what} ({})", failure::shortened(&f.first.message)))
        .evidence("cause", cause, "")
        .evidence("class", f.class(), "")
        .not("an executor's memory", "the error is in a thread of the driver, not in a task");
    remedies(f, draft, filling)
}

fn remedies(f: &Failure<'_>, draft: Draft, filling: Filling) -> Draft {
    let draft = match filling {
        Filling::Collect => draft
            .remedy(RemedyKind::Code, "Do not pull the rows: write them with df.write to a table or files and read what is needed; aggregate or limit before collect, toPandas or display")
            .snippet("df.write.saveAsTable(…)"),
        Filling::Broadcast => draft
            .remedy(RemedyKind::Sql, "Drop the forced broadcast: remove the BROADCAST hint, or set spark.sql.autoBroadcastJoinThreshold=-1 for this query")
            .remedy(RemedyKind::Sql, "Collect statistics (ANALYZE TABLE … COMPUTE STATISTICS) and select only the columns that the join needs"),
        Filling::Planning => draft
            .remedy(RemedyKind::Layout, "Fewer files and partitions: OPTIMIZE or compact the table, filter on partition columns so that fewer are listed")
            .remedy(RemedyKind::Code, "Break a plan that grows in a loop: write or checkpoint in between"),
        Filling::Tasks => draft.remedy(RemedyKind::Conf, "Fewer tasks: lower spark.sql.shuffle.partitions, larger input splits; less history: spark.ui.retainedTasks, retainedStages"),
        Filling::Unknown => draft.remedy(RemedyKind::Code, "Look for collect, toPandas, display and loops that gather rows; write results with df.write instead"),
    };
    let memory = f.cx.app.conf("spark.driver.memory").map(|m| format!(" (now {m})")).unwrap_or_default();
    draft
        .remedy(
            RemedyKind::Compute,
            format!("Then a larger driver: spark.driver.memory{memory}, set before the driver starts"),
        )
        .useless("repartition before collect", "the same rows arrive at the driver, in other pieces")
        .useless("a higher spark.driver.maxResultSize", "it only lifts a cap; the heap stays the same")
        .useless("more executors", "the memory of the driver is what is short")
        .confirm("result size of the action, and the driver's heap")
}
