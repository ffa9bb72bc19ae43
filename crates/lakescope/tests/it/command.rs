//! The binary: exit codes, forms, places to read from and write to.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LOG: &str = r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.3"}
{"Event":"SparkListenerApplicationStart","App Name":"orders","App ID":"app-1","Timestamp":1000,"User":"ada"}
{"Event":"SparkListenerApplicationEnd","Timestamp":61000}
"#;

fn lakescope(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakescope"));
    command.current_dir(folder).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("COLUMNS", "100");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    lakescope(folder).args(args).stdin(Stdio::null()).output().unwrap()
}

fn fed(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = lakescope(folder);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app-1"), LOG).unwrap();
    folder
}

#[test]
fn reads_a_file_and_standard_input_alike() {
    let folder = folder();
    let file = run(folder.path(), &["diagnose", "app-1", "--format", "json"]);
    assert_eq!(file.status.code(), Some(0), "{}", err(&file));
    let piped = fed(folder.path(), &["diagnose", "-", "--format", "json"], LOG.as_bytes());
    assert_eq!(out(&file), out(&piped));
    let report: model::Report = serde_json::from_slice(&file.stdout).unwrap();
    assert_eq!((report.application.id.as_str(), report.application.wall_ms), ("app-1", 60_000));
    assert_eq!(err(&file), "");
}

#[test]
fn a_file_url_is_a_path() {
    let folder = folder();
    let url = format!("file://{}/app-1", folder.path().display());
    assert_eq!(run(folder.path(), &["diagnose", &url]).status.code(), Some(0));
}

#[test]
fn a_text_without_anything_to_judge_is_no_healthy_run() {
    let folder = folder();
    std::fs::write(folder.path().join("words.txt"), "hello world\n").unwrap();
    std::fs::write(folder.path().join("a.json"), "{\"a\":1}\n").unwrap();
    for (args, said) in [
        (&["words.txt"][..], "nothing to diagnose in words.txt"),
        (&["a.json"], "nothing to diagnose in a.json"),
        (&["words.txt", "--kind", "log"], "it is no Spark event log"),
        (&["words.txt", "--kind", "plan"], "there is no query plan in it"),
        (&["app-1", "--kind", "plan"], "it is a Spark event log"),
        (&["app-1", "--max-memory", "10"], "at least 32MB"),
        (&["app-1", "--threads", "0"], "0 is not in 1..=1024"),
        (&["app-1", "--rate", "-5"], "a price is not below 0"),
        (&["app-1", "-o", "no/such/x.html"], "there is no folder no/such"),
    ] {
        let output = run(folder.path(), &[&["diagnose"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(said), "{args:?}: {}", err(&output));
    }
}

#[test]
fn what_can_be_read_among_others_is_reported() {
    let folder = folder();
    let output = run(folder.path(), &["diagnose", "app-1", "missing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("orders"), "{}", out(&output));
    assert!(err(&output).contains("there is no such file or folder"), "{}", err(&output));
}

#[test]
fn what_cannot_be_read_ends_with_2_and_says_what_to_do() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("nothing"), "").unwrap();
    std::fs::write(folder.path().join("binary"), [0, 159, 146, 150]).unwrap();
    for (input, said) in [
        ("missing", "cannot read missing"),
        ("empty", "no event log in empty: the folder is empty"),
        ("nothing", "is empty"),
        ("binary", "neither a Spark event log nor text"),
        ("ftp://host/x", "cannot read ftp://host/x"),
    ] {
        let output = run(folder.path(), &["diagnose", input]);
        assert_eq!(output.status.code(), Some(2), "{input}");
        assert!(err(&output).contains(said), "{input}: {}", err(&output));
        assert_eq!(out(&output), "");
    }
    assert_eq!(run(folder.path(), &["diagnose"]).status.code(), Some(2));
    assert_eq!(fed(folder.path(), &["diagnose", "-"], b"").status.code(), Some(2));
}

#[test]
fn a_folder_gives_a_table_and_one_of_it_a_report() {
    let folder = folder();
    std::fs::write(folder.path().join("app-2"), LOG.replace("app-1", "app-2")).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "nothing to see").unwrap();
    let table = out(&run(folder.path(), &["diagnose", "."]));
    assert!(table.contains("app-1") && table.contains("app-2") && table.contains("2 applications"), "{table}");
    let one = out(&run(folder.path(), &["diagnose", ".", "--app", "app-2", "--format", "json"]));
    let report: model::Report = serde_json::from_str(&one).unwrap();
    assert_eq!(report.application.id, "app-2");
    let both: Vec<model::Report> =
        serde_json::from_str(&out(&run(folder.path(), &["diagnose", ".", "--format", "json"]))).unwrap();
    assert_eq!(both.len(), 2);
    let none = run(folder.path(), &["diagnose", ".", "--app", "app-3"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("no application app-3 among 2"));
}

#[test]
fn the_name_of_the_output_chooses_the_form() {
    let folder = folder();
    for (name, begins) in [("r.html", "<!doctype html>"), ("r.md", "## "), ("r.json", "{"), ("r.txt", "✓ ")] {
        let output = run(folder.path(), &["diagnose", "app-1", "-o", name]);
        assert_eq!((output.status.code(), out(&output)), (Some(0), String::new()), "{}", err(&output));
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.starts_with(begins), "{name}: {}", &text[..40.min(text.len())]);
    }
}

#[test]
fn colour_only_where_it_is_wanted() {
    let folder = folder();
    let styled = |args: &[&str]| out(&run(folder.path(), args)).contains('\u{1b}');
    assert!(!styled(&["diagnose", "app-1"]));
    assert!(styled(&["diagnose", "app-1", "--color", "always"]));
    let mut quiet = lakescope(folder.path());
    let output = quiet.args(["diagnose", "app-1"]).env("NO_COLOR", "1").output().unwrap();
    assert!(!out(&output).contains('\u{1b}'));
}

#[test]
fn strict_refuses_a_damaged_log() {
    let folder = folder();
    std::fs::write(folder.path().join("cut"), &LOG.as_bytes()[..LOG.len() - 20]).unwrap();
    assert_eq!(run(folder.path(), &["diagnose", "cut"]).status.code(), Some(0));
    let strict = run(folder.path(), &["diagnose", "cut", "--strict"]);
    assert_eq!(strict.status.code(), Some(2), "{}", out(&strict));
}

#[test]
fn a_reader_that_had_enough_is_no_error() {
    let folder = folder();
    let mut command = lakescope(folder.path());
    command.args(["diagnose", "app-1", "--all"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

#[test]
fn fail_on_ends_with_1_when_found() {
    let folder = tempfile::tempdir().unwrap();
    let trace = "java.lang.OutOfMemoryError: Java heap space\n\tat java.util.Arrays.copyOf(Arrays.java:3332)\n\
                 \tat com.acme.Orders.run(Orders.scala:12)\n";
    std::fs::write(folder.path().join("trace.txt"), trace).unwrap();
    let output = run(folder.path(), &["diagnose", "trace.txt", "--fail-on", "low"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", out(&output), err(&output));
    let calm = fed(folder.path(), &["diagnose", "-", "--fail-on", "info"], LOG.as_bytes());
    assert!(matches!(calm.status.code(), Some(0 | 1)));
}

#[test]
fn settings_are_checked() {
    let folder = folder();
    let wrong = run(folder.path(), &["diagnose", "app-1", "--set", "skew=2"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("no such threshold"), "{}", err(&wrong));
    std::fs::write(folder.path().join("lakescope.toml"), "[diagnose]\nskew_ration = 3\n").unwrap();
    assert!(err(&run(folder.path(), &["diagnose", "app-1"])).contains("skew_ration"));
    let mut command = lakescope(folder.path());
    std::fs::remove_file(folder.path().join("lakescope.toml")).unwrap();
    let output = command.args(["diagnose", "app-1"]).env("LAKESCOPE_SHARED", "/x").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn the_calculator_answers_in_both_forms() {
    let folder = folder();
    let args = ["shuffle", "--bytes", "412GB", "--cores", "64", "--memory-per-core", "4GB", "--skew", "0.4"];
    let text = out(&run(folder.path(), &args));
    assert!(text.contains("3\u{202f}328 = 412 GiB ÷ 128 MiB"), "{text}");
    let json = out(&run(folder.path(), &[&args[..], &["--format", "json"]].concat()));
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer["outcome"]["split_partitions"], 1);
    let wrong = run(folder.path(), &["shuffle", "--bytes", "lots", "--cores", "1", "--memory-per-core", "1g"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("not a size"));
    let tiny = run(folder.path(), &["shuffle", "--bytes", "1GB", "--cores", "4", "--memory-per-core", "1k"]);
    assert_eq!(tiny.status.code(), Some(2));
    assert!(err(&tiny).contains("Spark refuses to start below 450 MiB"), "{}", err(&tiny));
    let huge = run(folder.path(), &["shuffle", "--bytes", "99999999TB", "--cores", "4", "--memory-per-core", "1g"]);
    assert!(err(&huge).contains("not be above 1 EiB"), "{}", err(&huge));
}

const EXPLAIN: &str = "\
== Physical Plan ==
*(2) HashAggregate(keys=[customer_id#7L], functions=[sum(amount#9)])
+- Exchange hashpartitioning(customer_id#7L, 200), ENSURE_REQUIREMENTS, [plan_id=30]
   +- *(1) HashAggregate(keys=[customer_id#7L], functions=[partial_sum(amount#9)])
      +- *(1) Filter (isnotnull(amount#9) AND (amount#9 > 50.0))
         +- *(1) ColumnarToRow
            +- FileScan parquet lake.orders[customer_id#7L,amount#9] Batched: true, DataFilters: \
[isnotnull(amount#9), (amount#9 > 50.0)], Format: Parquet, PartitionFilters: [], PushedFilters: \
[IsNotNull(amount), GreaterThan(amount,50.0)], ReadSchema: struct<customer_id:bigint,amount:double>
";

#[test]
fn a_pasted_plan_is_read_from_data_to_result() {
    let folder = folder();
    let text = out(&fed(folder.path(), &["plan", "-"], EXPLAIN.as_bytes()));
    let (scan, shuffle) = (text.find("lake.orders").unwrap(), text.find("customer_id").unwrap());
    assert!(scan < shuffle && text.contains("200"), "{text}");
    let json = out(&fed(folder.path(), &["plan", "-", "--format", "json"], EXPLAIN.as_bytes()));
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer["plan"]["stages"].as_array().unwrap().len(), 2);
    let none = fed(folder.path(), &["plan", "-"], b"no plan here");
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("no plan in -"), "{}", err(&none));
    let log = run(folder.path(), &["plan", "app-1"]);
    assert!(err(&log).contains("`lakescope plan --from app-1`"), "{}", err(&log));
    let no_sql = run(folder.path(), &["plan", "--from", "app-1"]);
    assert!(err(&no_sql).contains("no SQL in app-1"), "{}", err(&no_sql));
}

#[test]
fn documents_come_from_the_commands() {
    let folder = folder();
    assert!(out(&run(folder.path(), &["completions", "bash"])).contains("lakescope"));
    assert!(out(&run(folder.path(), &["man"])).contains(".TH"));
    assert!(out(&run(folder.path(), &["rules"])).contains("LOW_PARALLELISM"));
    let one = out(&run(folder.path(), &["rules", "skew-key"]));
    assert!(one.contains("skew_ratio = 1.5") && one.contains("helps"), "{one}");
    assert!(out(&run(folder.path(), &["rules", "REG_SETUP"])).contains("compare"));
    assert_eq!(run(folder.path(), &["rules", "NO_SUCH"]).status.code(), Some(2));
    assert!(out(&run(folder.path(), &["rules", "--settings"])).contains("skew_ratio"));
    for command in ["diagnose", "plan", "compare", "shuffle", "rules", "completions", "man"] {
        let help = out(&run(folder.path(), &[command, "--help"]));
        assert!(help.contains("Example"), "{command}");
    }
}
