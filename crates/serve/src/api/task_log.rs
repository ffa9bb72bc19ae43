//! What a task run writes, while it writes it.

use super::asked::At;
use super::failure::{self, Failure};
use super::openapi::words::StreamName;
use super::{Answer, json};
use crate::Workspace;
use crate::params::Params;
use axum::Extension;
use axum::extract::RawQuery;
use run::local::logs::{self, Chunk, Stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Most bytes of one answer.
const MOST_BYTES: usize = 256 << 10;

/// A task run.
#[derive(Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RunOf {
    /// Id of the task run: the `run_id` of an item of `tasks` or `iterations` in the Jobs API.
    run_id: i64,
}

/// Which part of the output.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Part {
    /// Standard output or standard error.
    #[param(inline, required = false, default = "stdout")]
    stream: StreamName,
    /// Where to begin: 0, or `next` of the answer before.
    #[param(required = false, default = 0, minimum = 0)]
    offset: u64,
}

/// A piece of the output of a task run.
#[derive(Serialize, ToSchema)]
struct TaskLog {
    /// What is there from the offset on, at most 256 KiB; empty: nothing more has come so far. What is
    /// no UTF-8 is replaced.
    text: String,
    /// Offset to ask for next, bytes.
    next: u64,
    /// Bytes between the offset and `text` that are not kept any more.
    left_out_bytes: u64,
    /// Whether the task run is over, so that an empty text is the end.
    is_over: bool,
}

/// What a task run wrote so far, from an offset on.
///
/// Works while the task runs as well as later. Secrets are blacked out before they are kept.
#[utoipa::path(
    get, path = "/runs/{run_id}/log", operation_id = "getTaskLog", tag = "jobs", params(RunOf, Part),
    responses(
        (status = 200, description = "A piece of the output", body = TaskLog),
        (status = 400, description = "A value is none of its kind", body = failure::Body),
        (status = 404, description = "There is no such task run, or the server runs no jobs", body = failure::Body),
    ),
)]
pub(super) async fn show(
    Extension(workspace): Extension<Option<Workspace>>,
    At(RunOf { run_id }): At<RunOf>,
    RawQuery(query): RawQuery,
) -> Answer {
    let params = Params::of(query.as_deref());
    let streams = [("stdout", Stream::Stdout), ("stderr", Stream::Stderr)];
    let stream = params.word("stream", &streams, "stdout or stderr")?;
    let offset = params.parsed::<u64>("offset", "a number of bytes")?.unwrap_or_default();
    let Some(workspace) = workspace else {
        return Err(Failure::not_found("this server runs no jobs; start it with --jobs".to_owned()));
    };
    let found = workspace.jobs.task_run(run_id).await.map_err(|error| Failure::internal(&error.to_string()))?;
    let task = found.ok_or_else(|| Failure::not_found(format!("there is no task run {run_id}")))?;
    // Known before the output is read: nothing comes after the end.
    let is_over = task.end_ms.is_some();
    let dir = workspace.engine.attempt(run_id);
    let read = crate::spans::spawn_blocking(move || logs::read(&dir, stream, offset, MOST_BYTES)).await;
    let read = read.map_err(|_| Failure::internal("reading the output failed"))?;
    let chunk = read.map_err(|error| Failure::internal(&error.to_string()))?;
    Ok(json(&piece(chunk, is_over)))
}

/// Bytes as text. A letter of which a part has not come yet waits for the rest.
fn piece(chunk: Chunk, is_over: bool) -> TaskLog {
    let Chunk { left_out_bytes, mut bytes, mut next } = chunk;
    let is_cut = !is_over || bytes.len() >= MOST_BYTES;
    if let Err(error) = std::str::from_utf8(&bytes)
        && is_cut
    {
        let rest = cut(&bytes, error.valid_up_to());
        next -= rest as u64;
        bytes.truncate(bytes.len() - rest);
    }
    TaskLog { text: String::from_utf8_lossy(&bytes).into_owned(), next, left_out_bytes, is_over }
}

/// Bytes at the end that begin a letter; 0: it is no beginning of one.
fn cut(bytes: &[u8], mut valid: usize) -> usize {
    loop {
        match std::str::from_utf8(&bytes[valid..]) {
            Ok(_) => return 0,
            Err(error) => match error.error_len() {
                None => return bytes.len() - valid - error.valid_up_to(),
                Some(wrong) => valid += error.valid_up_to() + wrong,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_comes_whole() {
        let whole = "tři".as_bytes();
        for (bytes, is_over, text, left) in [
            (whole, false, "tři", 0),
            (&whole[..2], false, "t", 1),
            (&whole[1..2], false, "", 1),
            (&whole[..2], true, "t\u{fffd}", 0),
            (&[b'a', 0xff, b'b'], false, "a\u{fffd}b", 0),
            (&[0xff, 0xc5], false, "\u{fffd}", 1),
        ] {
            let chunk = Chunk { left_out_bytes: 0, bytes: bytes.to_vec(), next: 100 };
            let piece = piece(chunk, is_over);
            assert_eq!((piece.text.as_str(), 100 - piece.next), (text, left), "{bytes:?} {is_over}");
        }
    }
}
