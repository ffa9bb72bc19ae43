//! Reading what was found, with its bounds and its progress bar; shared by the commands.

use crate::cli::{self, Global};
use crate::inputs::{self, Content, Found};
use crate::output;
use crate::progress::Watch;
use anyhow::{Context, Result, bail};
use model::{Application, PasteKind, Warning};
use read::source::{Limits, Note, Progress};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Bounds of reading.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Reading")]
pub struct Reading {
    /// Memory for reading; what does not fit is left out and named.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub max_memory: Option<i64>,
    /// Longest line that is read.
    #[arg(long, value_name = "SIZE", value_parser = cli::size)]
    pub max_line_bytes: Option<i64>,
    /// Threads that parse [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Fail when anything of a log could not be read.
    #[arg(long)]
    pub strict: bool,
    /// Show no progress bar.
    #[arg(long)]
    pub no_progress: bool,
}

impl Reading {
    /// Reads one thing; text is taken for `kind`, or for what it looks like.
    pub fn read(&self, found: Found, kind: Option<PasteKind>, global: &Global) -> Result<Application> {
        let begun = Instant::now();
        let mut app = match found.content {
            Content::Text(text) => return pasted(&found.name, &text, kind),
            Content::Log(parts) => {
                let total = parts.iter().map(|part| part.size).sum::<Option<u64>>().unwrap_or_default();
                let options = self.options();
                let wanted = !global.quiet && !self.no_progress;
                let _watch = Watch::start(&found.name, total, options.progress.clone(), wanted);
                read::event_log(parts, &options).with_context(|| format!("cannot read {}", found.name))?
            }
        };
        app.log.in_progress |= found.in_progress;
        self.note(&mut app, &found.notes)?;
        if global.verbose {
            output::remark(&remark(&app, begun));
        }
        Ok(app)
    }

    /// Reads the one log at an input.
    pub fn only(&self, input: &str, global: &Global) -> Result<Application> {
        let mut all = inputs::find(input, false)?;
        match (all.found.len(), all.found.pop()) {
            (1, Some(one)) if matches!(one.content, Content::Log(_)) => self.read(one, None, global),
            (1, _) => bail!("cannot read {input}: it is no event log"),
            (n, _) => bail!("{input} holds {n} applications; name the log of one"),
        }
    }

    /// What the names of the files say about the log.
    fn note(&self, app: &mut Application, notes: &[Note]) -> Result<()> {
        for note in notes {
            if self.strict && matches!(note, Note::MissingFiles { .. }) {
                bail!("the log is damaged: {note} (--strict)");
            }
            app.log.warnings.push(Warning { code: "LOG_PARTIAL".to_owned(), text: note.to_string() });
        }
        Ok(())
    }

    fn options(&self) -> read::Options {
        let mut limits = Limits::default();
        if let Some(bytes) = self.max_memory {
            limits.max_memory_bytes = bytes.unsigned_abs();
        }
        if let Some(bytes) = self.max_line_bytes {
            limits.max_line_bytes = bytes.unsigned_abs();
        }
        let asked = self.threads.and_then(|n| NonZeroUsize::new(n.into()));
        let threads = asked.unwrap_or(read::Options::default().threads);
        read::Options { limits, threads, strict: self.strict, progress: Progress::default() }
    }
}

/// Reads a text. One that holds nothing to judge is an error, so that a wrong file does not pass
/// for a healthy run; with `kind` it must hold that.
fn pasted(name: &str, text: &str, kind: Option<PasteKind>) -> Result<Application> {
    let app = read::paste::read(text, kind);
    let of = app.pasted.as_ref();
    let missing = match kind {
        Some(PasteKind::Plan) if of.is_none_or(|p| p.plans.is_empty()) => "no query plan",
        Some(PasteKind::Stack) if of.is_none_or(|p| p.incidents.is_empty()) => "no stack trace and no error",
        Some(PasteKind::StageMetrics) if app.stages.is_empty() => "no figures of a stage",
        Some(PasteKind::Streaming) if app.streams.is_empty() => "no progress of a streaming query",
        _ => return Ok(app),
    };
    bail!("cannot read {name}: there is {missing} in it; leave out --kind to have it detected")
}

/// Memory below which the reader's own buffers would not fit.
const LEAST_MEMORY: i64 = 32 << 20;

fn memory(text: &str) -> Result<i64, String> {
    match cli::size(text)? {
        bytes if bytes < LEAST_MEMORY => Err("reading needs at least 32MB".to_owned()),
        bytes => Ok(bytes),
    }
}

fn remark(app: &Application, begun: Instant) -> String {
    let (log, ms) = (&app.log, begun.elapsed().as_millis() as i64);
    format!(
        "read {}: {} lines, {} ({} stored) in {}",
        app.id,
        model::Count(log.lines),
        model::Bytes(log.bytes),
        model::Bytes(log.bytes_stored),
        model::Millis(ms)
    )
}
