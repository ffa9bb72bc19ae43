//! What happens in a run while it is waited for: its state, or all of its tasks with what they write.

use super::remote::{self, Form, Server, text};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};

/// Most pieces of a log that are read before the states are looked at again.
const MOST_PIECES: usize = 16;
/// Rows of the terminal that the tree leaves free.
const FREE_ROWS: usize = 4;
/// Where programs write.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// Kinds of tasks that write nothing themselves.
const SILENT: [&str; 3] = ["condition_task", "for_each_task", "run_job_task"];
/// States of a task that is not worth a line yet.
const NOT_YET: [&str; 3] = ["BLOCKED", "PENDING", "QUEUED"];

/// How a run is watched.
pub enum Watch {
    /// Its state alone.
    State {
        /// What has been told.
        last: String,
        /// Whether nothing is told.
        quiet: bool,
    },
    /// States of all tasks and what they write.
    Follow(Box<Follow>),
}

impl Watch {
    /// Tells changes of the run's state on standard error, unless nothing is to be told.
    pub fn state(quiet: bool) -> Self {
        Self::State { last: String::new(), quiet }
    }

    /// Tells everything but what task runs of these ids did.
    pub fn follow(form: Form, known: BTreeSet<i64>) -> Self {
        Self::Follow(Box::new(Follow {
            screen: Screen::new(form),
            state: String::new(),
            told: known.iter().map(|id| (*id, String::new())).collect(),
            over: known,
            tails: BTreeMap::new(),
            has_logs: true,
        }))
    }

    /// Whether changes are to be seen soon.
    pub fn is_close(&self) -> bool {
        matches!(self, Self::Follow(_))
    }

    /// Tells what has changed.
    pub async fn see(&mut self, run: &Value, server: &Server) {
        match self {
            Self::State { last, quiet } => {
                let state = text(&run["state"], "life_cycle_state");
                if state != *last && !*quiet && !is_final(&state) {
                    output::remark(&format!("run {}: {state}", run["run_id"]));
                }
                *last = state;
            }
            Self::Follow(follow) => follow.see(run, server).await,
        }
    }
}

/// Whether nothing follows a state.
pub fn is_final(life_cycle: &str) -> bool {
    ["TERMINATED", "SKIPPED", "INTERNAL_ERROR"].contains(&life_cycle)
}

/// The result, or how far it is.
pub fn state(run: &Value) -> String {
    let state = &run["state"];
    let result = text(state, "result_state");
    if result.is_empty() { text(state, "life_cycle_state") } else { result }
}

/// A time as people read it.
pub fn took(ms: &Value) -> String {
    ms.as_i64().map(|ms| model::Millis(ms).to_string()).unwrap_or_default()
}

/// Tells what happens in a run.
pub struct Follow {
    screen: Screen,
    /// State of the run that was told.
    state: String,
    /// States of task runs that were told.
    told: BTreeMap<i64, String>,
    /// Task runs of which everything was told.
    over: BTreeSet<i64>,
    tails: BTreeMap<i64, Tail>,
    has_logs: bool,
}

/// How far the output of a task run was told: standard output, standard error.
#[derive(Default)]
struct Tail {
    offsets: [u64; 2],
    /// The beginning of a line whose end has not come yet.
    begun: [String; 2],
}

impl Follow {
    async fn see(&mut self, run: &Value, server: &Server) {
        let is_over = is_final(&text(&run["state"], "life_cycle_state"));
        if !is_over {
            self.state(run);
        }
        for task in run["tasks"].as_array().into_iter().flatten() {
            self.task(task, server).await;
        }
        self.screen.tree(run);
        if is_over {
            self.state(run);
        }
    }

    fn state(&mut self, run: &Value) {
        let state = of_run(run);
        if state != self.state {
            self.screen.line(&state);
            self.state = state;
        }
    }

    async fn task(&mut self, task: &Value, server: &Server) {
        let Some(id) = task["run_id"].as_i64().filter(|id| !self.over.contains(id)) else { return };
        let life_cycle = text(&task["state"], "life_cycle_state");
        if NOT_YET.contains(&life_cycle.as_str()) {
            return;
        }
        let is_over = is_final(&life_cycle);
        if !is_over && self.told.get(&id) != Some(&life_cycle) {
            self.screen.line(&of_task(task));
        }
        self.told.insert(id, life_cycle);
        if self.has_logs && writes(task) && !self.log(id, &text(task, "task_key"), is_over, server).await {
            return;
        }
        if is_over {
            self.screen.line(&of_task(task));
            self.over.insert(id);
        }
    }

    /// Tells what a task run has written since the last look; whether that could be found out.
    async fn log(&mut self, id: i64, key: &str, is_over: bool, server: &Server) -> bool {
        for (at, stream) in STREAMS.into_iter().enumerate() {
            for _ in 0..if is_over { usize::MAX } else { MOST_PIECES } {
                let tail = self.tails.entry(id).or_default();
                let query = [("stream", stream.to_owned()), ("offset", tail.offsets[at].to_string())];
                let piece = match server.get(&format!("/api/lakescope/v1/runs/{id}/log"), &query).await {
                    Ok(piece) => piece,
                    Err(error) if remote::may_pass(&error) => return false,
                    Err(_) => {
                        self.has_logs = false;
                        self.screen.line("this server does not show what tasks write while they run");
                        return true;
                    }
                };
                tail.offsets[at] = piece["next"].as_u64().unwrap_or(tail.offsets[at]);
                let wrote = text(&piece, "text");
                tail.lines(at, &wrote, is_over, piece["left_out_bytes"].as_u64().unwrap_or_default())
                    .iter()
                    .for_each(|line| self.screen.line(&format!("[{key}] {line}")));
                if wrote.is_empty() {
                    break;
                }
            }
        }
        true
    }
}

impl Tail {
    /// Whole lines of what has come; at the end the rest too.
    fn lines(&mut self, stream: usize, wrote: &str, is_over: bool, left_out_bytes: u64) -> Vec<String> {
        let mut all = std::mem::take(&mut self.begun[stream]);
        if left_out_bytes > 0 {
            all.push_str(&format!("\n… {left_out_bytes} bytes are not kept …\n"));
        }
        all.push_str(wrote);
        let is_end = is_over && wrote.is_empty();
        let mut lines: Vec<String> = all.split('\n').map(str::to_owned).collect();
        let begun = lines.pop().unwrap_or_default();
        match is_end && !begun.is_empty() {
            true => lines.push(begun),
            false => self.begun[stream] = begun,
        }
        lines
    }
}

/// What is said of the state of a run.
fn of_run(run: &Value) -> String {
    let (id, state, life_cycle) = (&run["run_id"], state(run), text(&run["state"], "life_cycle_state"));
    let message = text(&run["state"], "state_message");
    if !is_final(&life_cycle) {
        return format!("run {id}: {state}{}", behind(": ", &text(&run["state"], "queue_reason")));
    }
    format!("run {id}: {state}, took {}{}", took(&run["run_duration"]), behind("; ", &message))
}

/// What is said of the state of a task run.
fn of_task(task: &Value) -> String {
    let (life_cycle, result) = (text(&task["state"], "life_cycle_state"), state(task));
    let mut line = format!("{}: {result}", name(task));
    if is_final(&life_cycle) {
        if took_long(task) {
            line.push_str(&format!(", took {}", took(&task["run_duration"])));
        }
        let is_good = ["SUCCESS", "EXCLUDED", "DISABLED"].contains(&result.as_str());
        let message = text(&task["state"], "state_message");
        line.push_str(&behind("; ", if is_good { "" } else { &message }));
    }
    line
}

fn name(task: &Value) -> String {
    let key = text(task, "task_key");
    match task["attempt_number"].as_i64().unwrap_or_default() {
        0 => key,
        number => format!("{key} (attempt {})", number + 1),
    }
}

fn behind(sign: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{sign}{text}") }
}

/// Whether a task run did anything.
fn took_long(task: &Value) -> bool {
    task["execution_duration"].as_i64().is_some_and(|ms| ms > 0)
}

fn writes(task: &Value) -> bool {
    SILENT.iter().all(|kind| task[*kind].is_null())
}

/// Where it is told: lines, and on a terminal a tree below them that changes.
struct Screen {
    /// Standard output has to stay JSON.
    to_stderr: bool,
    tree: Option<ProgressBar>,
}

impl Screen {
    fn new(form: Form) -> Self {
        let is_seen = std::io::stderr().is_terminal() && (form == Form::Json || std::io::stdout().is_terminal());
        let style = ProgressStyle::with_template("{msg}").ok();
        let tree = style.filter(|_| is_seen).map(|style| ProgressBar::new_spinner().with_style(style));
        Self { to_stderr: form == Form::Json, tree }
    }

    fn line(&self, line: &str) {
        let line = crate::render::one_line(line);
        let tell = || match self.to_stderr {
            true => output::remark(&line),
            // Whoever read had enough; the run is waited for all the same.
            false => drop(writeln!(std::io::stdout().lock(), "{line}")),
        };
        match &self.tree {
            Some(bar) => bar.suspend(tell),
            None => tell(),
        }
    }

    fn tree(&self, run: &Value) {
        let Some(bar) = &self.tree else { return };
        if is_final(&text(&run["state"], "life_cycle_state")) {
            return bar.finish_and_clear();
        }
        let rows = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        bar.set_message(tree(run, rows.saturating_sub(FREE_ROWS).max(1)).join("\n"));
        bar.tick();
    }
}

/// A run as a tree of its tasks, at most so many; each stands deeper than what it waits for.
fn tree(run: &Value, most: usize) -> Vec<String> {
    let attempts = run["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut tasks: Vec<&Value> = Vec::new();
    for task in attempts {
        match tasks.iter_mut().find(|known| known["task_key"] == task["task_key"]) {
            Some(known) => *known = task,
            None => tasks.push(task),
        }
    }
    let depths = depths(&tasks);
    let is = |task: &Value, wanted: fn(&str) -> bool| wanted(&text(&task["state"], "life_cycle_state"));
    let over = tasks.iter().filter(|task| is(task, is_final)).count();
    let mut shown: Vec<usize> = (0..tasks.len()).collect();
    // Those that run, then those that did not go well, then those that wait, then the rest.
    let rank = |at: &usize| match (state(tasks[*at]).as_str(), is(tasks[*at], is_final)) {
        ("RUNNING" | "TERMINATING" | "WAITING_FOR_RETRY", _) => 0,
        ("SUCCESS" | "EXCLUDED" | "DISABLED", _) => 3,
        (_, true) => 1,
        _ => 2,
    };
    shown.sort_by_key(rank);
    shown.truncate(most);
    shown.sort_unstable();
    let width = shown.iter().map(|&at| 2 * depths[at] + name(tasks[at]).chars().count()).max().unwrap_or_default();
    let mut rows = vec![format!("run {}: {}, {over} of {} tasks over", run["run_id"], state(run), tasks.len())];
    rows.extend(shown.iter().map(|&at| row(tasks[at], depths[at], width)));
    if tasks.len() > most {
        rows.push(format!("  … and {} more", tasks.len() - most));
    }
    rows
}

fn row(task: &Value, depth: usize, width: usize) -> String {
    let state = state(task);
    let sign = match state.as_str() {
        "SUCCESS" => '✓',
        "RUNNING" | "TERMINATING" => '●',
        "FAILED" | "TIMEDOUT" | "INTERNAL_ERROR" | "UPSTREAM_FAILED" => '✗',
        _ => '·',
    };
    let name = format!("{}{}", "  ".repeat(depth), name(task));
    let items = &task["for_each_task"]["stats"]["task_run_stats"];
    let items = match (items["completed_iterations"].as_i64(), items["total_iterations"].as_i64()) {
        (Some(over), Some(total)) if total > 0 => format!("  {over} of {total} items"),
        _ => String::new(),
    };
    let took = if took_long(task) { behind("  ", &took(&task["run_duration"])) } else { String::new() };
    format!("  {sign} {name:<width$}  {state}{took}{items}")
}

/// How many tasks stand above each one.
fn depths(tasks: &[&Value]) -> Vec<usize> {
    let position: BTreeMap<String, usize> =
        tasks.iter().enumerate().map(|(at, task)| (text(task, "task_key"), at)).collect();
    let mut depths = vec![0; tasks.len()];
    // A graph without circles is settled after as many rounds as it is deep.
    for _ in 0..tasks.len() {
        let mut changed = false;
        for (at, task) in tasks.iter().enumerate() {
            let above = task["depends_on"].as_array().into_iter().flatten();
            let above = above.filter_map(|on| position.get(on["task_key"].as_str()?)).map(|&on| depths[on] + 1).max();
            if above.is_some_and(|depth| depth > depths[at]) {
                depths[at] = above.unwrap_or_default();
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(key: &str, on: &[&str], state: &str, result: Option<&str>, attempt: i64, ms: i64) -> Value {
        let on: Vec<Value> = on.iter().map(|key| json!({ "task_key": key })).collect();
        json!({ "task_key": key, "depends_on": on, "run_id": 1, "attempt_number": attempt, "run_duration": ms,
            "execution_duration": ms, "state": { "life_cycle_state": state, "result_state": result } })
    }

    #[test]
    fn a_run_is_a_tree_of_its_tasks() {
        let mut each = task("each", &["load"], "RUNNING", None, 0, 4_000);
        each["for_each_task"] =
            json!({ "stats": { "task_run_stats": { "completed_iterations": 3, "total_iterations": 10 } } });
        let run = json!({ "run_id": 42, "state": { "life_cycle_state": "RUNNING" }, "tasks": [
            task("load", &[], "TERMINATED", Some("FAILED"), 0, 2_000),
            task("report", &["each", "check"], "BLOCKED", None, 0, 0),
            each,
            task("check", &["load"], "TERMINATED", Some("FAILED"), 0, 61_000),
            task("load", &[], "TERMINATED", Some("SUCCESS"), 1, 12_500),
        ] });
        expect_test::expect![[r#"
            run 42: RUNNING, 2 of 4 tasks over
              ✓ load (attempt 2)  SUCCESS  13 s
              ·     report        BLOCKED
              ●   each            RUNNING  4.0 s  3 of 10 items
              ✗   check           FAILED  1 m 01 s
        "#]]
        .assert_eq(&(tree(&run, 10).join("\n") + "\n"));
        expect_test::expect![[r#"
            run 42: RUNNING, 2 of 4 tasks over
              ●   each   RUNNING  4.0 s  3 of 10 items
              ✗   check  FAILED  1 m 01 s
              … and 2 more
        "#]]
        .assert_eq(&(tree(&run, 2).join("\n") + "\n"));
    }
}
