//! What can be diagnosed: files, folders, archives, standard input, objects in a bucket, text.
//!
//! Finding comes before reading: [`find`] lists what an input holds and opens nothing but the
//! first bytes of what no name explains.

#[cfg(all(feature = "serve", target_os = "linux"))]
pub(crate) mod arrivals;
#[cfg(feature = "cloud")]
mod cloud;
mod local;
#[cfg(feature = "serve")]
pub(crate) mod watch;

use anyhow::{Context, Result, bail};
use read::source::{
    Batch, Entry, LogFiles, LogKind, LooksLike, Note, Options, Part, Probe, ZipLogs, group, probe, run, zip_logs,
};
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Text longer than this is no paste.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// One thing to diagnose, found and not yet read.
#[derive(Debug)]
pub struct Found {
    /// What to call it in messages.
    pub name: String,
    /// What it is.
    pub content: Content,
    /// What is odd about its files.
    pub notes: Vec<Note>,
    /// Whether a name says that the application was still running.
    pub in_progress: bool,
}

/// What was found.
#[derive(Debug)]
pub enum Content {
    /// The parts of an event log, in order.
    Log(Vec<Part>),
    /// Text of another kind.
    Text(String),
}

/// All that an input holds.
#[derive(Debug, Default)]
pub struct Findings {
    /// What can be diagnosed.
    pub found: Vec<Found>,
    /// What can not, with the reason.
    pub skipped: Vec<(String, String)>,
    /// What was not even looked at.
    pub warnings: Vec<String>,
}

/// A place with files: a folder or a bucket.
trait Place {
    /// What to call a file of it.
    fn name(&self, path: &str) -> String;
    /// A file as a stream that can be opened again.
    fn part(&self, path: &str, size: Option<u64>) -> Part;
    /// A file that can be read at any position.
    fn seekable(&self, path: &str, size: Option<u64>) -> Result<File>;
}

/// Finds what an input holds: `-`, a path or a URL. With `as_text` a log is refused.
///
/// # Errors
/// When it cannot be opened or listed, or holds nothing that can be read.
pub fn find(input: &str, as_text: bool) -> Result<Findings> {
    if input == "-" {
        return local::standard_input(as_text);
    }
    match scheme(input) {
        None => local::find(std::path::Path::new(input), as_text),
        Some("file") => local::find(&local::path_of_url(input)?, as_text),
        Some(scheme) => remote(scheme, input, as_text),
    }
}

#[cfg(feature = "cloud")]
fn remote(_scheme: &str, input: &str, as_text: bool) -> Result<Findings> {
    cloud::find(input, as_text)
}

#[cfg(not(feature = "cloud"))]
fn remote(scheme: &str, input: &str, _as_text: bool) -> Result<Findings> {
    bail!(
        "cannot read {input}: this build reads no {scheme}:// addresses; build with `--features cloud`, or copy it first"
    )
}

/// The scheme of a URL; a Windows drive letter is none.
fn scheme(input: &str) -> Option<&str> {
    let (scheme, _) = input.split_once("://")?;
    let valid = scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    valid.then_some(scheme)
}

/// The logs among the files of a place, which are listed by path.
fn in_place(place: &dyn Place, listing: &[Entry]) -> Findings {
    let mut all = Findings::default();
    let grouped = group(listing);
    for log in grouped.logs {
        let name = place.name(&log.parts[0]);
        if let Err(error) = one_of_many(place, listing, log, &mut all) {
            all.skipped.push((name, format!("{error:#}")));
        }
    }
    let skipped = grouped.ignored.into_iter().map(|(path, why)| (place.name(&path), why.to_string()));
    all.skipped.extend(skipped);
    all
}

/// A log among others. A lone file must look like one, because a folder holds anything.
fn one_of_many(place: &dyn Place, listing: &[Entry], log: LogFiles, all: &mut Findings) -> Result<()> {
    let at = |path: &str| listing.binary_search_by(|e| e.path.as_str().cmp(path)).ok();
    let size = |path: &str| at(path).and_then(|at| listing[at].size);
    let mut parts: Vec<Part> = log.parts.iter().map(|path| place.part(path, size(path))).collect();
    let kind = match log.kind {
        LogKind::Single => probe(&mut parts[0])?.looks_like,
        LogKind::Zip => LooksLike::Zip,
        LogKind::Rolling | LogKind::Databricks => LooksLike::EventLog,
    };
    match kind {
        LooksLike::EventLog => {
            all.found.push(Found {
                name: log.name,
                content: Content::Log(parts),
                notes: log.notes,
                in_progress: log.in_progress,
            });
        }
        LooksLike::Zip => {
            let file = place.seekable(&log.parts[0], size(&log.parts[0]))?;
            all.extend(archive(&place.name(&log.parts[0]), file)?);
        }
        other => bail!("{}", not_a_log(other)),
    }
    Ok(())
}

/// A single file or object that was named on the command line.
fn single(place: &dyn Place, path: &str, size: Option<u64>, as_text: bool) -> Result<Findings> {
    let name = place.name(path);
    let mut part = place.part(path, size);
    let looked = probe(&mut part).with_context(|| format!("cannot read {name}"))?;
    if looked.looks_like == LooksLike::Zip {
        return archive(&name, place.seekable(path, size)?);
    }
    named(name, part, &looked, as_text)
}

/// A stream that was named on the command line, by what it looks like.
fn named(name: String, part: Part, looked: &Probe, as_text: bool) -> Result<Findings> {
    let in_progress = name.ends_with(".inprogress");
    let content = match looked.looks_like {
        LooksLike::EventLog if !as_text => Content::Log(vec![part]),
        LooksLike::EventLog => {
            bail!(
                "cannot read {name} as text: it is a Spark event log; `lakescope diagnose {name}` or `lakescope plan --from {name}` reads it"
            )
        }
        LooksLike::Text => Content::Text(text(&name, part)?),
        other => bail!("cannot read {name}: it {}", not_a_log(other)),
    };
    let found = Found { name, content, notes: Vec::new(), in_progress };
    Ok(Findings { found: vec![found], ..Findings::default() })
}

fn not_a_log(looks: LooksLike) -> String {
    match looks {
        LooksLike::Unsupported(what) => format!("is {what}, which no Spark writes a log in; unpack it first"),
        LooksLike::Binary => "is neither a Spark event log nor text".to_owned(),
        LooksLike::Damaged => "is compressed and damaged from its first byte on".to_owned(),
        LooksLike::Empty => "is empty".to_owned(),
        LooksLike::Text => "is no Spark event log; name the file itself to have it read as text".to_owned(),
        LooksLike::EventLog | LooksLike::Zip => "is no text".to_owned(),
    }
}

fn text(name: &str, part: Part) -> Result<String> {
    let mut bytes = Vec::new();
    let options = Options { threads: NonZeroUsize::MIN, ..Options::default() };
    let stats = run(vec![part], &options, lines, |_, lines| {
        bytes.extend(lines);
        if bytes.len() > MAX_TEXT_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if bytes.len() > MAX_TEXT_BYTES {
        bail!("cannot read {name}: it is no event log, and text ends at {}", model::Bytes(MAX_TEXT_BYTES as u64));
    }
    if let Some(damage) = stats.parts.first().and_then(|part| part.damages.first()) {
        bail!("cannot read {name}: {damage}");
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lines(batch: &Batch) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in batch.lines() {
        bytes.extend_from_slice(line.bytes);
        bytes.push(b'\n');
    }
    bytes
}

/// The logs of a zip archive.
fn archive(name: &str, file: File) -> Result<Findings> {
    let file = std::sync::Arc::new(file);
    let ZipLogs { logs, ignored, unreadable } =
        zip_logs(move || Ok(local::Shared::new(file.clone()))).with_context(|| format!("cannot read {name}"))?;
    let mut all = Findings::default();
    for (log, mut parts) in logs {
        let lone = log.kind == LogKind::Single || log.kind == LogKind::Zip;
        let looks = match (lone, parts.first_mut()) {
            (true, Some(part)) => probe(part).map(|p| p.looks_like).unwrap_or(LooksLike::Damaged),
            _ => LooksLike::EventLog,
        };
        let inside = format!("{name}: {}", log.name);
        match looks {
            LooksLike::EventLog => all.found.push(Found {
                name: log.name,
                content: Content::Log(parts),
                notes: log.notes,
                in_progress: log.in_progress,
            }),
            LooksLike::Zip => all.skipped.push((inside, "is an archive inside an archive".to_owned())),
            other => all.skipped.push((inside, not_a_log(other))),
        }
    }
    all.skipped.extend(ignored.into_iter().map(|(path, why)| (format!("{name}: {path}"), why.to_string())));
    all.skipped.extend(unreadable.into_iter().map(|(path, why)| (format!("{name}: {path}"), why.to_owned())));
    Ok(all)
}

impl Findings {
    /// Adds what another input holds.
    pub fn extend(&mut self, other: Self) {
        self.found.extend(other.found);
        self.skipped.extend(other.skipped);
        self.warnings.extend(other.warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_told_from_paths() {
        assert_eq!(scheme("s3://b/k"), Some("s3"));
        assert_eq!(scheme("C://x"), None);
        assert_eq!(scheme("logs/app-1"), None);
        assert_eq!(scheme("a b://x"), None);
    }
}
