//! What comes back is what went in: for real logs, and for whatever a log may hold.

use crate::world::{World, key};
use model::{Accumulator, Application, EndReason, Label, Metric, Report, Stage, TaskRow, TaskStatus, Text};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut logs: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|e| e == "zstd"));
    logs
}

/// Labelled logs and those of Spark's own tests, where the shared data is there.
fn shared() -> Vec<PathBuf> {
    let Some(data) = testkit::shared().map(|shared| shared.join("data")) else {
        println!("skipped: LAKESCOPE_SHARED names no folder with data");
        return Vec::new();
    };
    let labelled = data.join("eventlogs");
    let manifest = testkit::corpus::manifest(&labelled).unwrap();
    let of_spark = fs::read_dir(data.join("spark-history/spark-events")).unwrap();
    let labelled = manifest.iter().map(|log| labelled.join(&log.file));
    labelled.chain(of_spark.map(|entry| entry.unwrap().path())).collect()
}

#[tokio::test]
async fn the_diagnosis_of_a_kept_application_is_that_of_the_log() {
    let world = World::new().await;
    let mut compared = 0;
    for path in samples().into_iter().chain(shared()) {
        let Ok(app) = testkit::logs::read_log(&path) else { continue };
        let key = key(&path.display().to_string(), 1);
        world.put(&key, &app).await;
        let kept = world.get(&key).await.unwrap();
        assert!(kept == app, "{} came back changed", path.display());
        assert_eq!(diagnosis(&kept), diagnosis(&app), "{}", path.display());
        assert!(distinct_texts(&kept) <= distinct_texts(&app), "texts of {} are no longer shared", path.display());
        compared += 1;
    }
    println!("{compared} logs compared");
    assert!(compared >= samples().len());
}

/// As a server keeps it.
fn diagnosis(app: &Application) -> String {
    let report = diagnose::diagnose(app, &diagnose::Config::default());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    json
}

/// Allocations behind the texts of plans and stages.
fn distinct_texts(app: &Application) -> usize {
    let plans = app.sql.iter().flat_map(|sql| [Some(&sql.first_plan), sql.last_plan.as_ref()]).flatten();
    let nodes = plans.flat_map(|plan| &plan.nodes).flat_map(|node| [&node.name, &node.detail]);
    let stages = app.stages.iter().flat_map(|stage| [&stage.name, &stage.details]).filter_map(|label| label.0.as_ref());
    nodes.chain(stages).map(|text: &Text| text.as_ptr()).collect::<HashSet<_>>().len()
}

fn figure() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), -200_i64..200, 1_795_975_612_432_i64..1_795_975_700_000, any::<i64>()]
}

fn text() -> impl Strategy<Value = Text> {
    prop_oneof![Just(""), Just("a"), Just("straße 路"), Just("line\nline\0")].prop_map(Text::from)
}

fn task() -> impl Strategy<Value = TaskRow> {
    let figures = proptest::collection::vec((0..Metric::STORED, figure()), 0..8);
    (any::<i64>(), figures, proptest::option::of((text(), proptest::option::of(text())))).prop_map(
        |(id, figures, failure)| {
            let mut row = TaskRow::new(id);
            for (at, value) in figures {
                row.set(Metric::ALL_STORED[at], value);
            }
            if let Some((message, host)) = failure {
                row.status = TaskStatus::Failed;
                let executor = host.clone();
                let reason =
                    EndReason::FetchFailed { executor, host, shuffle: id, map_index: -1, reduce: i64::MIN, message };
                row.failure = Some(Box::new(reason));
            }
            row
        },
    )
}

fn application() -> impl Strategy<Value = Application> {
    let stages = proptest::collection::vec((text(), proptest::collection::vec(task(), 0..40)), 0..4);
    let pairs = proptest::collection::vec((text(), text()), 0..4);
    let accumulators = proptest::collection::vec((any::<i64>(), figure()), 0..20);
    (stages, pairs, accumulators).prop_map(|(stages, pairs, accumulators)| {
        let mut app = Application::default();
        for (number, (name, tasks)) in stages.into_iter().enumerate() {
            let mut stage = Stage { name: Label(Some(name)), ..Stage::new(number as u32, 0) };
            tasks.into_iter().for_each(|row| stage.tasks.push(row));
            app.stages.push(stage);
        }
        let accumulator = |sum| Accumulator { sum, max: -sum.max(-1), updates: 1, stage: None };
        app.accumulators = accumulators.into_iter().map(|(id, sum)| (id, accumulator(sum))).collect();
        app.environment.spark = pairs.iter().cloned().collect();
        app.environment.class_path = pairs;
        app
    })
}

#[test]
fn any_application_comes_back_equal() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    proptest!(|(app in application())| {
        let key = key("/logs/any", 1);
        runtime.block_on(world.put(&key, &app));
        let kept = runtime.block_on(world.get(&key));
        prop_assert_eq!(kept, Some(app));
    });
}

/// Only inside `model::write_shared` is a text a number.
#[test]
fn json_has_texts_as_they_are() {
    let label = Label::from("stage");
    assert_eq!(serde_json::to_value(&label).unwrap(), "stage");
    assert_eq!(serde_json::from_value::<Label>("stage".into()).unwrap(), label);
    let (number, apart) = model::write_shared(|| serde_json::to_value(&label).unwrap());
    assert_eq!((number, &*apart.texts[0]), (0.into(), "stage"));
    let read = |number: u32| model::read_shared(apart.clone(), || serde_json::from_value::<Label>(number.into()));
    assert_eq!(read(0).unwrap(), label);
    assert!(read(1).unwrap_err().to_string().contains("not in the list"));
}
