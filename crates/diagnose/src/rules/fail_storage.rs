//! FAIL_STORAGE_THROTTLE and FAIL_AUTH: the storage or a service said no (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at refusals of the storage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Throttle, throttled);
    failure::each(cx, out, Cause::Auth, refused);
}

/// The path or URL that a text names.
fn path(text: &str) -> Option<String> {
    find(r#"((?:s3[an]?|abfss?|wasbs?|gs|hdfs|dbfs|adl|https?)://?[^\s'"),;\]]+|/mnt/[^\s'"),;]+)"#, text)
        .map(|m| m[1].trim_end_matches(['.', ':']).to_owned())
}

fn status(text: &str) -> Option<i64> {
    find(r"(?i)(?:status code:? ?|statusCode=|http/\d\.\d |response code:? ?|\b)(4\d\d|503)\b", text)
        .and_then(|m| m[1].parse().ok())
}

fn throttled(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let path = path(&text);
    let prefix = path.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
    let mut draft = f.draft(format!("the storage asks to slow down{prefix}: {}", failure::shortened(&f.first.message)));
    draft = with_facts(draft, path, status(&text));
    let slots = f.cx.slots.steps.iter().map(|s| s.1).max().unwrap_or_default();
    if slots > 0 {
        draft = draft.evidence("slots", slots, "slots");
    }
    draft
        .not("missing permission", "the request was refused for its rate, not for who asked")
        .remedy(RemedyKind::Conf, "Fewer requests at once: fewer tasks in this stage (coalesce before the write, spark.sql.shuffle.partitions), fewer executors while it writes")
        .remedy(RemedyKind::Layout, "Fewer and larger files: compact the table (OPTIMIZE), write 128 MB and more, spread keys over several prefixes")
        .remedy(RemedyKind::Conf, "Retry with back-off: fs.s3a.retry.limit and fs.s3a.attempts.maximum, or the client's exponential back-off")
        .useless("more executors", "they send more requests to the same limit")
        .confirm("refused requests a minute")
}

fn with_facts(draft: Draft, path: Option<String>, status: Option<i64>) -> Draft {
    let draft = match path {
        Some(path) => draft.evidence("path", path, ""),
        None => draft,
    };
    match status {
        Some(status) => draft.evidence("status", status, ""),
        None => draft,
    }
}

fn refused(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let lower = text.to_lowercase();
    let expired = has_any(&lower, &["expired"]);
    let unknown = has_any(
        &lower,
        &[
            "invalidaccesskey",
            "signaturedoesnotmatch",
            "unable to load",
            "no aws credentials",
            "gss initiate",
            "401",
            "unauthenticated",
            "authenticationfailed",
        ],
    );
    let path = path(&text);
    let on = path.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
    let (cause, what) = match (expired, unknown) {
        (true, _) => ("expired", "a token or key has expired"),
        (_, true) => ("identity", "the identity is not accepted"),
        _ => ("permission", "access is denied"),
    };
    let draft = f
        .draft(format!("{what}{on}: {}", failure::shortened(&f.first.message)))
        .evidence("cause", cause, "")
        .evidence("class", f.class(), "");
    let draft = with_facts(draft, path, status(&text));
    let first = match cause {
        "expired" => {
            "Renew the token, and let the application refresh it by itself (role or service principal instead of a session token) when it runs longer than the token lives"
        }
        "identity" => {
            "Give the job a valid identity: credentials of the run-as user, instance role or service principal on driver and executors"
        }
        _ => "Grant the run-as identity what it needs on that path or table, or run as the one that has it",
    };
    draft
        .not("the code", "the service refused the request")
        .remedy(RemedyKind::Ops, first)
        .remedy(
            RemedyKind::Ops,
            "See whether the run-as identity, the role or the policy changed since the last good run",
        )
        .useless("more retries", "the answer stays the same until the permission or the token changes")
        .confirm("the same request with the same identity")
}
