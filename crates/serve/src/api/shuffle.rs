//! The shuffle calculator, by hand or filled from a stage.

use super::failure::Failure;
use super::{Answer, json};
use crate::params::Params;
use diagnose::shuffle::{self, MAX_PARTITIONS, Recorded, Shuffle};
use model::Application;

/// What is given by hand.
pub(super) fn given(params: &Params) -> Answer {
    let shuffle = asked(params, Shuffle::default())?;
    if shuffle.bytes <= 0 {
        return Err(Failure::bad_request("the bytes that the stage reads are needed".to_owned(), "use ?bytes=412GB"));
    }
    answer(params, &shuffle, None)
}

/// A stage as it ran, and what is asked on top of it.
pub(super) fn of_stage(app: &Application, id: u32, attempt: u32, params: &Params) -> Answer {
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
