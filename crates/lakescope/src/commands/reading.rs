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
    #[arg(long, value_name = "SIZE", value_parser = cli::size)]
    pub max_memory: Option<i64>,
    /// Longest line that is read.
    #[arg(long, value_name = "SIZE", value_parser = cli::size)]
    pub max_line_bytes: Option<i64>,
    /// Threads that parse [default: one a core].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
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
            Content::Text(text) => return Ok(read::paste::read(&text, kind)),
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
        let threads = self.threads.unwrap_or(read::Options::default().threads);
        read::Options { limits, threads, strict: self.strict, progress: Progress::default() }
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
