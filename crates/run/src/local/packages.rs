//! Python packages of a task: in an environment that is made once for each list of packages and
//! interpreter, and shared by all tasks that ask for the same.
//!
//! It is the task's own process that makes it, before it becomes the program: what the installer
//! says stands in the task's log, and it is stopped, or outlives the engine, as the program is.

use super::files::about;
use super::gate::Environment;
use super::shared;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages that a program needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packages {
    /// The interpreter that they are for: a path, or a name that is looked up in `PATH`. What is
    /// installed for it can be used, too.
    pub python: String,
    /// Lines of a requirements file.
    pub requirements: Vec<String>,
    /// The folder of all environments, absolute.
    pub environments: PathBuf,
}

const PROGRAM: &str = "bin/python";

/// Makes the environment if there is none, and gives its folder. This process, and the program
/// that it becomes, keep it from being removed.
///
/// # Errors
/// A package cannot be installed: the message is the installer's.
pub(super) fn enter(packages: &Packages, environment: &Environment) -> io::Result<PathBuf> {
    let folder = packages.environments.join(identity(packages, environment)?);
    shared::enter(&folder, |folder| make(packages, folder, environment))?;
    Ok(folder)
}

/// The same for what gives the same packages: interpreter, lines, and what is in local files.
fn identity(packages: &Packages, environment: &Environment) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    // An interpreter that was replaced by a newer one in the same place needs other packages.
    add(answer(&packages.python, VERSION, environment)?.as_bytes());
    for line in &packages.requirements {
        add(line.as_bytes());
        if let Some(file) = file_of(line) {
            let bytes = fs::read(file).map_err(|e| about(&e, format!("`{file}` cannot be read"), "check its path"))?;
            add(&bytes);
        }
    }
    Ok(digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// The local file that a line of a requirements file names.
fn file_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let listed = ["-r", "--requirement", "-c", "--constraint"];
    let listed = listed.into_iter().find_map(|option| line.strip_prefix(option));
    match listed {
        Some(file) => Some(file.trim_start_matches([' ', '='])),
        None => Some(line).filter(|line| line.starts_with('/')),
    }
}

fn make(packages: &Packages, folder: &Path, environment: &Environment) -> io::Result<()> {
    let Some(python) = folder.join(PROGRAM).to_str().map(str::to_owned) else {
        return Err(io::Error::other(format!("`{}` is no text; name another data directory", folder.display())));
    };
    let uv = installed("uv", environment);
    let run = |program: &str, arguments: &[&str]| run(program, arguments, environment);
    let at = folder.display().to_string();
    match uv {
        true => run("uv", &["venv", "--quiet", "--seed", "--system-site-packages", "--python", &packages.python, &at])?,
        false => run(&packages.python, &["-m", "venv", "--system-site-packages", &at])?,
    }
    show_packages_of(&packages.python, folder, environment)?;
    let list = folder.join("requirements.txt");
    fs::write(&list, packages.requirements.join("\n") + "\n")?;
    let list = list.display().to_string();
    match uv {
        true => run("uv", &["pip", "install", "--python", &python, "-r", &list]),
        false => run(&python, &["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", &list]),
    }
}

/// Asks an interpreter where it finds packages, if it is one of an environment; the answer is lines
/// that make another one find them there, with all that these folders name in turn.
const SITES: &str = "import sys, site
if sys.prefix != sys.base_prefix:
    for folder in site.getsitepackages(): print(f'import site; site.addsitedir({folder!r})')";
/// Asks an interpreter which one it is.
const VERSION: &str = "import sys; print(sys.executable, sys.version)";
/// Asks an interpreter where its own packages are.
const OWN: &str = "import sysconfig; print(sysconfig.get_paths()['purelib'])";

/// An environment that is made from another one sees the packages of what that was made from, but
/// not those of its own: lets it see both.
fn show_packages_of(python: &str, folder: &Path, environment: &Environment) -> io::Result<()> {
    let sites = answer(python, SITES, environment)?;
    if sites.trim().is_empty() {
        return Ok(());
    }
    let own = answer(&folder.join(PROGRAM).display().to_string(), OWN, environment)?;
    fs::write(Path::new(own.trim()).join("made-from.pth"), sites)
}

fn answer(python: &str, code: &str, environment: &Environment) -> io::Result<String> {
    let mut command = Command::new(python);
    command.args(["-c", code]).env_clear().envs(environment).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| unrun(&e, python))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(format!("`{python}` does not answer ({})", output.status))),
    }
}

fn installed(program: &str, environment: &Environment) -> bool {
    let path = environment.get("PATH").map_or("", String::as_str);
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

fn unrun(error: &io::Error, program: &str) -> io::Error {
    about(error, format!("`{program}` cannot be run"), "install it, or name another interpreter by --python")
}

/// Runs a part of the installation. What it says goes to the messages of the task.
fn run(program: &str, arguments: &[&str], environment: &Environment) -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command.spawn().map_err(|e| unrun(&e, program))?;
    // Its ends of the pipe.
    drop(command);
    let why = repeat(reader, &mut io::stderr())?;
    let status = child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(why.unwrap_or_else(|| format!("{program} {} failed ({status})", arguments[0])))),
    }
}

/// Repeats what an installer says, and gives what of it says best what went wrong.
fn repeat(from: impl io::Read, to: &mut impl Write) -> io::Result<Option<String>> {
    let (mut first_error, mut last) = (None, None);
    for line in BufReader::new(from).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        // Without a reader it goes on all the same.
        let _ = writeln!(to, "{line}");
        if let Some(error) = line.trim().strip_prefix("ERROR: ").or_else(|| line.trim().strip_prefix("× ")) {
            first_error.get_or_insert(error.to_owned());
        }
        last = Some(line).filter(|line| !line.trim().is_empty()).or(last);
    }
    Ok(first_error.or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_files() {
        for (line, file) in [
            ("pandas==2.3.0", None),
            ("/wheels/a-1.0-py3-none-any.whl", Some("/wheels/a-1.0-py3-none-any.whl")),
            ("-r /jobs/requirements.txt", Some("/jobs/requirements.txt")),
            ("--constraint=/jobs/limits.txt", Some("/jobs/limits.txt")),
            ("--extra-index-url https://example.com", None),
        ] {
            assert_eq!(file_of(line), file, "{line}");
        }
    }

    #[test]
    fn the_installer_says_what_went_wrong() {
        let pip = "Looking in indexes\nERROR: Could not find a version that satisfies the requirement nosuch\n\
                   ERROR: No matching distribution found for nosuch\n";
        let mut said = Vec::new();
        let why = repeat(pip.as_bytes(), &mut said).unwrap();
        assert_eq!(said, pip.as_bytes());
        assert_eq!(why.as_deref(), Some("Could not find a version that satisfies the requirement nosuch"));
        assert_eq!(repeat("a\nb\n\n".as_bytes(), &mut said).unwrap().as_deref(), Some("b"));
    }
}
