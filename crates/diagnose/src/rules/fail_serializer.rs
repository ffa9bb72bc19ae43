//! FAIL_SERIALIZER and FAIL_TASK_SIZE: an object or a task that is too large to ship (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, size};
use model::{RemedyKind, Share};

const MIB: i64 = 1 << 20;
/// Kryo's buffer must stay below 2 GiB.
const KRYO_MOST: i64 = 2_047 * MIB;

/// Looks at what could not be serialised.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Serializer, kryo);
    failure::each(cx, out, Cause::TaskSize, task_size);
}

fn kryo(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let found = find(r"Buffer overflow\. Available: (\d+), required: (\d+)", &text);
    let number = |group: usize| found.as_ref().and_then(|m| m[group].parse::<i64>().ok());
    let key = "spark.kryoserializer.buffer.max";
    let now = f.cx.app.conf_bytes(key, MIB as u64).unwrap_or(64 * MIB);
    // `required` is what one more field needs, not the whole object: double what there is.
    let wanted = (now * 2).max(128 * MIB).max(number(2).map_or(0, |r| r + r / 4)).min(KRYO_MOST);
    let title = match (number(1), number(2)) {
        (Some(a), Some(r)) => {
            format!("an object does not fit Kryo's buffer of {}: {a} bytes available, {r} required", size(now))
        }
        _ => format!("an object does not fit Kryo's buffer of {}", size(now)),
    };
    let mut draft = f.draft(title).evidence("buffer_max_bytes", now, "bytes");
    if let (Some(available), Some(required)) = (number(1), number(2)) {
        draft = draft.evidence("available", available, "bytes").evidence("required", required, "bytes");
    }
    draft
        .not("executor memory", "the limit is that of the serialiser's buffer, not the heap")
        .remedy(RemedyKind::Conf, format!("Raise {key} to {}m (below 2048m), set before the application starts", wanted / MIB))
        .computed(format!("twice the {} of now", size(now)))
        .remedy(RemedyKind::Code, "Find why one object is that large: a collected list, a broadcast value, one group as a single row; make it smaller")
        .useless("more executor memory", "the buffer has its own limit")
        .confirm("the stage gets past serialisation")
}

fn task_size(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let found = find(r"Serialized task (\S+) was (\d+) bytes, which exceeds max allowed: \S+ \((\d+) bytes", &text);
    let number = |group: usize| found.as_ref().and_then(|m| m[group].parse::<i64>().ok());
    let title = match (number(2), number(3)) {
        (Some(task), Some(most)) => format!(
            "a task of {} is too large to send (limit {}): local data is part of the plan",
            size(task),
            size(most)
        ),
        _ => "a task is too large to send: local data is part of the plan".to_owned(),
    };
    let mut draft = f.draft(title);
    if let (Some(task), Some(most)) = (number(2), number(3)) {
        draft = draft
            .evidence("task_bytes", task, "bytes")
            .over(most as f64)
            .evidence("limit_bytes", most, "bytes")
            .evidence("over_limit", (task - most) as f64 / most.max(1) as f64, "share")
            .not(
                "a limit that is a little too low",
                format!("it is {} over it, and grows with the list", Share((task - most) as f64 / most.max(1) as f64)),
            );
    }
    draft
        .remedy(RemedyKind::Code, "Take the data out of the plan: write the list to a file and read it, instead of parallelize or createDataFrame of a big list")
        .remedy(RemedyKind::Code, "Ship large values that a function uses as broadcast variables; do not close over them")
        .remedy(RemedyKind::Code, "Or cut the list into more partitions: parallelize(data, numSlices)")
        .useless("a higher spark.rpc.message.maxSize", "every task would still carry the data, and the driver sends each one")
        .confirm("size of the serialised tasks")
}
