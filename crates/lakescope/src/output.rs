//! Where the answer goes: standard output, or a file that appears whole or not at all.

use crate::cli::Color;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;

/// Prints a text with styles to standard output, or writes it to a file without them.
pub fn put(text: &str, file: Option<&Path>, color: Color) -> Result<()> {
    match file {
        None => print(text, color),
        Some(file) => write(&plain(text, color), file),
    }
}

fn print(text: &str, color: Color) -> Result<()> {
    let mut out = anstream::AutoStream::new(std::io::stdout().lock(), choice(color));
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn plain(text: &str, color: Color) -> String {
    match color {
        Color::Always => text.to_owned(),
        _ => anstream::adapter::strip_str(text).to_string(),
    }
}

/// Writes beside the file and renames, so that a reader never sees a half. A device or a pipe
/// (`/dev/stdout`) cannot be renamed over and is written to.
fn write(text: &str, file: &Path) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    if file.exists() && !file.is_file() {
        return std::fs::write(file, text).with_context(cannot);
    }
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!("cannot write {}: there is no folder {}", file.display(), folder.display());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lakescope-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temporary = builder
        .tempfile_in(folder)
        // The name of the temporary file would only confuse.
        .map_err(|e| std::io::Error::from(e.kind()))
        .with_context(cannot)?;
    temporary.write_all(text.as_bytes()).with_context(cannot)?;
    temporary.persist(file).map_err(|e| e.error).with_context(cannot)?;
    Ok(())
}

/// Says something on standard error: `lakescope: warning: …`.
pub fn complain(color: Color, what: &str, text: &str) {
    use anstyle::{AnsiColor, Color as Ansi, Effects, Style};
    let hue = if what == "error" { AnsiColor::Red } else { AnsiColor::Yellow };
    let style = Style::new().fg_color(Some(Ansi::Ansi(hue))).effects(Effects::BOLD);
    let mut out = anstream::AutoStream::new(std::io::stderr().lock(), choice(color));
    // Nobody can be told that standard error is gone.
    let _ = writeln!(out, "{style}{what}{style:#}: {}", crate::render::clean(text));
}

/// Says something on standard error without a mark.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", crate::render::clean(text));
}

fn choice(color: Color) -> anstream::ColorChoice {
    match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::AlwaysAnsi,
        Color::Never => anstream::ColorChoice::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.txt");
        for text in ["old", "new"] {
            put(text, Some(&file), Color::Auto).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = put("x", Some(&folder.path().join("no/such/place")), Color::Auto).unwrap_err();
        assert!(error.to_string().starts_with("cannot write"), "{error}");
    }
}
