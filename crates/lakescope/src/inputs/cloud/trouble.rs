//! What a store client's error means to a reader: what happened, and what to look at next.

use super::address::{Address, Provider};
use anyhow::{Error, anyhow};
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error as _;
use std::io;
use std::time::Duration;

/// What went wrong, as far as the next step depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    NotThere,
    Denied,
    /// No credentials were given, and the machine has none either.
    NoCredentials,
    NoAnswer,
    OtherRegion,
    Other,
}

/// Paths of the services that give a machine its role.
const ROLE_SERVICES: [&str; 4] = ["/latest/api/token", "/latest/meta-data", "/metadata/identity/", "/computeMetadata/"];
/// Longest message of a server that is repeated, characters.
const LONGEST_SAID: usize = 200;

/// The error when nothing came for so long.
pub fn silence(waited: Duration) -> object_store::Error {
    let source = io::Error::new(io::ErrorKind::TimedOut, format!("waited {} s", waited.as_secs()));
    object_store::Error::Generic { store: "bucket", source: Box::new(source) }
}

/// The error that the command ends with: the address, what happened, what to do.
pub fn explained(address: &Address, error: &object_store::Error) -> Error {
    let trouble = trouble(error);
    anyhow!("cannot read {}: {}; {}", address.given, said(error), next(address, trouble))
}

/// Whether the store itself answered, and with a no.
pub fn refused(error: &object_store::Error) -> bool {
    matches!(trouble(error), Trouble::Denied | Trouble::Other) && status(&error.to_string()).is_some()
}

/// What happened, in one line and without repeating the request.
pub fn said(error: &object_store::Error) -> String {
    let code = code(&error.to_string()).map(|code| format!(" ({code})")).unwrap_or_default();
    match trouble(error) {
        Trouble::NotThere => format!("there is no such bucket or object{code}"),
        Trouble::Denied => format!("access is denied{code}"),
        Trouble::NoCredentials => "no credentials are set, and this machine has no role that gives any".to_owned(),
        Trouble::NoAnswer => format!("no answer{}: {}", from(&error.to_string()), innermost(error)),
        Trouble::OtherRegion => "the bucket is in another region".to_owned(),
        Trouble::Other => match status(&error.to_string()) {
            Some(status) => format!("the server says {status}{code}"),
            None => shortened(&first_line(without_store(&error.to_string()))),
        },
    }
}

/// What the client calls one kind of error in a listing and another elsewhere, the server's
/// status tells apart.
fn trouble(error: &object_store::Error) -> Trouble {
    let text = error.to_string();
    let has = |part: &str| text.contains(part);
    if ROLE_SERVICES.iter().any(|path| has(path)) {
        return Trouble::NoCredentials;
    }
    match status(&text).and_then(|status| status.get(..3)) {
        _ if has("redirect without LOCATION") || has("AuthorizationHeaderMalformed") => Trouble::OtherRegion,
        Some("404") => Trouble::NotThere,
        Some("401" | "403") => Trouble::Denied,
        None if unanswered(error) => Trouble::NoAnswer,
        _ => Trouble::Other,
    }
}

/// Whether no server answered: refused, not resolved, or silent for too long.
fn unanswered(error: &object_store::Error) -> bool {
    let silent = |kind| matches!(kind, HttpErrorKind::Connect | HttpErrorKind::Timeout);
    causes(error).any(|cause| {
        cause.downcast_ref::<HttpError>().is_some_and(|http| silent(http.kind()))
            || cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
    })
}

fn causes<'a>(error: &'a object_store::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&'a (dyn std::error::Error + 'static)| (*cause).source())
}

fn innermost(error: &object_store::Error) -> String {
    first_line(&causes(error).last().map_or_else(|| error.to_string(), ToString::to_string))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

/// An error of the client itself without `Generic S3 error: `.
fn without_store(text: &str) -> &str {
    let rest = text.strip_prefix("Generic ").and_then(|rest| rest.split_once(" error: "));
    rest.map_or(text, |(_, rest)| rest)
}

/// The server that was asked, of `Error performing GET http://host:1/path in 2s`.
fn from(text: &str) -> String {
    let url = text.split_whitespace().find(|word| word.starts_with("http://") || word.starts_with("https://"));
    let origin = url.and_then(|url| url::Url::parse(url).ok()).map(|url| url.origin().ascii_serialization());
    origin.map(|origin| format!(" from {origin}")).unwrap_or_default()
}

/// The code in a server's answer, which its documentation explains: `NoSuchBucket`.
fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    (!code.is_empty() && code.chars().all(|c| c.is_ascii_alphanumeric())).then_some(code)
}

/// The status of a server's answer: `404 Not Found`.
fn status(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("status code: ")?;
    let end = rest.find(':').unwrap_or(rest.len());
    Some(rest[..end].trim_end())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SAID) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What to do about it.
fn next(address: &Address, trouble: Trouble) -> String {
    let Words { endpoint, keys, login, public } = Words::of(address.provider);
    match trouble {
        Trouble::NotThere => format!("check the name in {} and {endpoint}", address.root),
        Trouble::Denied => format!("check {keys}, and that they may list and read this; {public}"),
        Trouble::NoCredentials => format!("{login}; {public}"),
        Trouble::NoAnswer => format!("check {endpoint}, and what is between (proxy, firewall)"),
        Trouble::OtherRegion => "set AWS_REGION to the bucket's (`aws s3api get-bucket-location`)".to_owned(),
        Trouble::Other => format!("check the address, {keys} and {endpoint}"),
    }
}

/// What a provider's settings are called.
struct Words {
    endpoint: &'static str,
    keys: &'static str,
    login: &'static str,
    public: &'static str,
}

impl Words {
    fn of(provider: Provider) -> Self {
        match provider {
            Provider::Amazon => Self {
                endpoint: "AWS_ENDPOINT_URL, if set",
                keys: "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
                login: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for a profile or a sign-in of the aws command, \
                        run `eval \"$(aws configure export-credentials --format env)\"`",
                public: "a public bucket wants AWS_SKIP_SIGNATURE=true",
            },
            Provider::Azure => Self {
                endpoint: "AZURE_STORAGE_ACCOUNT",
                keys: "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
                login: "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; after `az login`, set AZURE_USE_AZURE_CLI=true",
                public: "a public container wants AZURE_SKIP_SIGNATURE=true",
            },
            Provider::Google => Self {
                endpoint: "STORAGE_EMULATOR_HOST, if set",
                keys: "GOOGLE_APPLICATION_CREDENTIALS",
                login: "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file",
                public: "a public bucket wants GOOGLE_SKIP_SIGNATURE=true",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(source: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: source.into() }
    }

    #[test]
    fn troubles_are_told_apart() {
        for (text, expected) in [
            ("Error performing PUT http://169.254.169.254/latest/api/token in 1s - HTTP error", Trouble::NoCredentials),
            ("Received redirect without LOCATION, this normally indicates …", Trouble::OtherRegion),
            ("Server returned non-2xx status code: 400 Bad Request: <Code>ExpiredToken</Code>", Trouble::Other),
            ("Server returned non-2xx status code: 403 Forbidden: ", Trouble::Denied),
            ("Server returned non-2xx status code: 404 Not Found: <Code>NoSuchBucket</Code>", Trouble::NotThere),
        ] {
            assert_eq!(trouble(&failed(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_is_told_by_its_code() {
        let answer = "Server returned non-2xx status code: 400 Bad Request: <?xml version=\"1.0\"?>\n<Error>\
                      <Code>ExpiredToken</Code><Message>The token has expired</Message></Error>";
        let said = said(&failed(answer));
        assert_eq!(said, "the server says 400 Bad Request (ExpiredToken)");
    }

    #[test]
    fn the_server_is_named_without_its_path() {
        let text = "Error performing GET http://127.0.0.1:9/bucket?prefix=secret in 1s";
        assert_eq!(from(text), " from http://127.0.0.1:9");
    }
}
