//! The shuffle calculator, by hand or filled from a stage.

use super::asked::{Asked, At, StageOf};
use super::failure::{self, Failure};
use super::openapi::shapes::ShuffleAnswer;
use super::openapi::words::{ShuffleOperation, Switch};
use super::{Answer, json, waiting};
use crate::params::Params;
use axum::extract::RawQuery;
use diagnose::shuffle::{self, MAX_PARTITIONS, Recorded, Shuffle};
use model::Application;
use utoipa::IntoParams;

/// A shuffle. Sizes are numbers of bytes, or numbers with a unit such as `412GB` or `64MiB`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Given {
    /// Size that the stage reads. Needed where there is no stage to take it from, as are the
    /// defaults of all others: of a stage, what it ran with.
    #[param(required = false, example = "412GB")]
    bytes: String,
    /// Tasks that run at once. Default 1, or the stage's.
    #[param(required = false, minimum = 1)]
    cores: i64,
    /// Heap of an executor divided by its cores, a size. Default 4 GiB, or the stage's.
    #[param(required = false, example = "4GB")]
    memory_per_core: String,
    /// Cores of an executor. Default 4, or the stage's.
    #[param(required = false, minimum = 1)]
    cores_per_executor: i64,
    /// Size that a task should read. Default 128 MiB.
    #[param(required = false, example = "128MB")]
    target: String,
    /// Share of the rows that have the most frequent key. Default 0, or the stage's.
    #[param(required = false, minimum = 0.0, maximum = 1.0)]
    skew: f64,
    /// Whether adaptive execution is on. Default `on`, or the stage's.
    #[param(inline, required = false)]
    aqe: Switch,
    /// What the stage does with the rows. Default `join`, or the stage's.
    #[param(inline, required = false)]
    operation: ShuffleOperation,
    /// Size that one core gets through in a second. Default 32 MiB, or the stage's.
    #[param(required = false, example = "32MB")]
    bytes_per_second: String,
    /// Number of partitions to play. Default the proposed one.
    #[param(required = false, minimum = 1, maximum = 1_000_000)]
    partitions: i64,
}

/// The shuffle calculator, from numbers.
///
/// Proposes a number of partitions and plays it and others beside it. What `lakescope shuffle`
/// prints. `bytes` is needed.
#[utoipa::path(
    get, path = "/shuffle", operation_id = "planShuffle", tag = "tools", params(Given),
    responses(
        (status = 200, description = "What the shuffle will do", body = ShuffleAnswer),
        (status = 400, description = "`bytes` is missing, or a value is none of its kind", body = failure::Body),
    ),
)]
pub(super) async fn show(RawQuery(query): RawQuery) -> Answer {
    waiting(move || given(&Params::of(query.as_deref()))).await
}

/// The shuffle calculator, from a stage.
///
/// What is not given is taken from the stage as it ran.
#[utoipa::path(
    get, path = "/stages/{stage}/{stage_attempt}/shuffle", operation_id = "planShuffleOfStage", tag = "stages",
    params(StageOf, Given),
    responses(
        (status = 200, description = "What the shuffle will do", body = ShuffleAnswer),
        (status = 400, description = "A value is none of its kind", body = failure::Body),
        (status = 404, description = "There is no such application or stage, or it reads no shuffle", body = failure::Body),
    ),
)]
pub(super) async fn show_stage(asked: Asked, At(of): At<StageOf>) -> Answer {
    asked.answer(move |_, opened, params| of_stage(opened.app(), of.stage, of.stage_attempt, params)).await
}

/// What is given by hand.
fn given(params: &Params) -> Answer {
    let shuffle = asked(params, Shuffle::default())?;
    if shuffle.bytes <= 0 {
        return Err(Failure::bad_request("the bytes that the stage reads are needed".to_owned(), "use ?bytes=412GB"));
    }
    answer(params, &shuffle, None)
}

/// A stage as it ran, and what is asked on top of it.
fn of_stage(app: &Application, id: u32, attempt: u32, params: &Params) -> Answer {
    let stage = app.stage(id, attempt).ok_or_else(|| Failure::no_such_stage(id, attempt))?;
    let Some(recorded) = shuffle::of_stage(app, stage) else {
        return Err(Failure::not_found(format!("stage {id} reads no shuffle")));
    };
    let shuffle = asked(params, recorded.shuffle.clone())?;
    answer(params, &shuffle, Some(&recorded))
}

fn answer(params: &Params, shuffle: &Shuffle, recorded: Option<&Recorded>) -> Answer {
    let partitions = params.parsed::<i64>("partitions", "a number of partitions")?;
    if partitions.is_some_and(|n| !(1..=MAX_PARTITIONS).contains(&n)) {
        let message = format!("partitions must be from 1 to {MAX_PARTITIONS}");
        return Err(Failure::bad_request(message, "choose fewer"));
    }
    let same = recorded.is_some_and(|recorded| recorded.shuffle.adaptive == shuffle.adaptive);
    Ok(json(&shuffle::Answer::new(shuffle, recorded, partitions, same)))
}

/// What is asked for, on top of what is known.
fn asked(params: &Params, from: Shuffle) -> Result<Shuffle, Failure> {
    let size = |name| match params.get(name).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => match model::parse_bytes(text, 1) {
            Some(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(Failure::bad_request(format!("{name} is no size: {text:?}"), "use a size such as 412GB")),
        },
    };
    let count = |name| match params.parsed::<i64>(name, "a whole number above 0")? {
        Some(n) if n < 1 => Err(Failure::bad_request(format!("{name} must be above 0"), "use 1 or more")),
        n => Ok(n),
    };
    let skew = params.parsed::<f64>("skew", "a share from 0 to 1")?;
    if skew.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err(Failure::bad_request("skew must be a share".to_owned(), "use a number from 0 to 1"));
    }
    let switch = |name, given| params.word(name, &[("", given), ("on", true), ("off", false)], "on or off");
    Ok(Shuffle {
        bytes: size("bytes")?.unwrap_or(from.bytes),
        cores: count("cores")?.unwrap_or(from.cores),
        memory_per_core: size("memory_per_core")?.unwrap_or(from.memory_per_core),
        cores_per_executor: count("cores_per_executor")?.unwrap_or(from.cores_per_executor),
        target: size("target")?.unwrap_or(from.target),
        skew: skew.unwrap_or(from.skew),
        adaptive: switch("aqe", from.adaptive)?,
        join: params.word(
            "operation",
            &[("", from.join), ("join", true), ("aggregate", false), ("window", false)],
            "join, aggregate or window",
        )?,
        bytes_per_second: size("bytes_per_second")?.map_or(from.bytes_per_second, |bytes| bytes as f64),
        ..from
    })
}
