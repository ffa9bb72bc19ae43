//! `lakescope lab`: a bad and a repaired variant on the user's own Spark, diagnosed and compared.

use crate::cli::Global;
use crate::commands::reading::Reading;
use crate::render::{self, Look};
use crate::{inputs, output, settings};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use diagnose::compare::compare;
use model::Application;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const EXAMPLES: &str = "\
Examples:
  lakescope lab skew                                     on the Spark that is found here
  lakescope lab spill --scale 0.3 --master 'local[4]'    smaller, on four local cores
  lakescope lab shuffle --spark-submit /opt/spark/bin/spark-submit --master spark://host:7077
  lakescope lab oom --python /venv/bin/python --keep ./oom-logs

Spark is looked for in this order: --spark-submit, --python, SPARK_HOME, spark-submit on PATH, a
python3 with PySpark.";

/// The scripts, written out beside each other when a laboratory runs.
const SCRIPTS: [(&str, &str); 6] = [
    ("common.py", include_str!("../../lab/common.py")),
    ("skew.py", include_str!("../../lab/skew.py")),
    ("spill.py", include_str!("../../lab/spill.py")),
    ("shuffle.py", include_str!("../../lab/shuffle.py")),
    ("oom.py", include_str!("../../lab/oom.py")),
    ("small_files.py", include_str!("../../lab/small_files.py")),
];

/// Make a bad and a repaired variant on your own Spark, diagnose both and compare.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What goes wrong.
    #[arg(value_enum)]
    pub lab: Lab,
    /// Master URL.
    #[arg(long, default_value = "local[4]")]
    pub master: String,
    /// Size of the data; 1 takes about a minute a variant on two cores.
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// The spark-submit to use.
    #[arg(long, value_name = "FILE")]
    pub spark_submit: Option<PathBuf>,
    /// A Python with PySpark to use.
    #[arg(long, value_name = "FILE", conflicts_with = "spark_submit")]
    pub python: Option<PathBuf>,
    /// Keep data and logs in this folder (all executors must see it) [default: a temporary one].
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// More Spark settings, `key=value`.
    #[arg(long = "conf", value_name = "KEY=VALUE")]
    pub confs: Vec<String>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Reading.
    #[command(flatten)]
    pub reading: Reading,
    /// Thresholds and prices.
    #[command(flatten)]
    pub settings: settings::Options,
}

/// What goes wrong in a laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lab {
    /// One key has most rows.
    Skew,
    /// Partitions larger than memory.
    Spill,
    /// Far more bytes shuffled than needed.
    Shuffle,
    /// More memory taken than there is; the bad variant fails.
    Oom,
    /// Thousands of tiny files.
    SmallFiles,
}

impl Lab {
    fn script(self) -> &'static str {
        match self {
            Self::Skew => "skew.py",
            Self::Spill => "spill.py",
            Self::Shuffle => "shuffle.py",
            Self::Oom => "oom.py",
            Self::SmallFiles => "small_files.py",
        }
    }
}

/// Forms of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
}

/// What a script prints in its last line.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Outcome {
    variant: String,
    result: serde_json::Value,
    rows: u64,
}

/// One variant: how it ended and what its log says.
struct Variant {
    outcome: Option<Outcome>,
    app: Application,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    if !(args.scale > 0.0 && args.scale <= 100.0) {
        bail!("--scale {} is not above 0 and at most 100", args.scale);
    }
    let config = settings::load(&args.settings)?;
    let spark = Spark::find(args.spark_submit.as_deref(), args.python.as_deref())?;
    let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
    let folder = args.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    for (name, text) in SCRIPTS {
        std::fs::write(folder.join(name), text).with_context(|| format!("cannot write {}", folder.display()))?;
    }
    spark.run(args, &folder, "data", global)?;
    let bad = variant(args, &spark, &folder, "bad", global)?;
    let good = variant(args, &spark, &folder, "good", global)?;
    if let (Some(a), Some(b)) = (&bad.outcome, &good.outcome)
        && (&a.result, a.rows) != (&b.result, b.rows)
    {
        bail!("the variants of lab {:?} gave different results: {a:?} and {b:?}", args.lab);
    }
    let text = answer(args, global, &config, &bad, &good)?;
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

fn variant(args: &Args, spark: &Spark, folder: &Path, name: &str, global: &Global) -> Result<Variant> {
    let outcome = spark.run(args, folder, name, global)?;
    if outcome.is_none() && name == "good" {
        bail!("the repaired variant failed; see {}", folder.join("good.err").display());
    }
    let log = logs(folder, name);
    let input = log.to_string_lossy();
    let found = inputs::find(&input, false)?;
    let Some(one) = found.found.into_iter().next() else { bail!("Spark wrote no event log into {}", log.display()) };
    Ok(Variant { outcome, app: args.reading.read(one, None, global)? })
}

fn logs(folder: &Path, variant: &str) -> PathBuf {
    folder.join(format!("{variant}-log"))
}

fn answer(args: &Args, global: &Global, config: &diagnose::Config, bad: &Variant, good: &Variant) -> Result<String> {
    let (bad_report, good_report) = (diagnose::diagnose(&bad.app, config), diagnose::diagnose(&good.app, config));
    let comparison = compare(&[&bad.app], &good.app, config);
    if args.format == Format::Json {
        let value = serde_json::json!({
            "lab": args.lab.script().trim_end_matches(".py"),
            "bad": bad_report, "good": good_report, "comparison": comparison,
            "results": { "bad": bad.outcome, "good": good.outcome },
        });
        return Ok(serde_json::to_string_pretty(&value)? + "\n");
    }
    let look = Look { width: global.columns(), ..Look::default() };
    let mut text = String::from("The bad variant\n\n");
    text.push_str(&render::text(&bad_report, &look));
    text.push_str("\nThe repaired variant\n\n");
    text.push_str(&render::text(&good_report, &look));
    if let Some(comparison) = comparison.filter(|_| bad.outcome.is_some()) {
        text.push_str("\nThe difference\n\n");
        text.push_str(&render::compare_text(&comparison, global.columns(), false));
    }
    text.push_str(match bad.outcome {
        Some(_) => "\nBoth variants gave the same result.\n",
        None => "\nThe bad variant failed, as it should; the repaired one gave its result.\n",
    });
    Ok(text)
}

/// How Spark is started.
pub(super) enum Spark {
    Submit(PathBuf),
    Python(PathBuf),
}

/// Where Spark is.
#[cfg(all(feature = "serve", target_os = "linux"))]
pub(super) struct Home {
    /// The value of `SPARK_HOME`.
    pub folder: PathBuf,
    /// The interpreter of its programs.
    pub python: PathBuf,
}

impl Spark {
    /// The one that is named, or else the first that is found.
    pub(super) fn find(submit: Option<&Path>, python: Option<&Path>) -> Result<Self> {
        if let Some(submit) = submit {
            return Ok(Self::Submit(submit.to_owned()));
        }
        if let Some(python) = python {
            return Ok(Self::Python(python.to_owned()));
        }
        let home = std::env::var_os("SPARK_HOME").map(|home| PathBuf::from(home).join("bin/spark-submit"));
        if let Some(submit) = home.filter(|p| p.is_file()).or_else(|| on_path("spark-submit")) {
            return Ok(Self::Submit(submit));
        }
        let python = on_path("python3").or_else(|| on_path("python")).filter(|p| has_pyspark(p));
        match python {
            Some(python) => Ok(Self::Python(python)),
            None => bail!(
                "no Spark found: set SPARK_HOME, put spark-submit on PATH, `pip install pyspark`, or name one with \
                 --spark-submit or --python"
            ),
        }
    }

    /// Its folder and interpreter.
    #[cfg(all(feature = "serve", target_os = "linux"))]
    pub(super) fn home(&self) -> Result<Home> {
        match self {
            Self::Submit(submit) => {
                let submit = submit.canonicalize().with_context(|| format!("cannot find {}", submit.display()))?;
                let folder = submit.parent().and_then(Path::parent).context("spark-submit is in no folder of Spark")?;
                let python = on_path("python3").context("no python3 is in the PATH")?;
                Ok(Home { folder: folder.to_owned(), python })
            }
            Self::Python(python) => {
                let code = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";
                let output = Command::new(python).args(["-c", code]).output();
                let output = output.with_context(|| format!("cannot run {}", python.display()))?;
                if !output.status.success() {
                    bail!("{} has no PySpark; `pip install pyspark` there, or name another one", python.display());
                }
                let folder = String::from_utf8(output.stdout).context("the folder of PySpark is no text")?;
                Ok(Home { folder: PathBuf::from(folder.trim()), python: python.clone() })
            }
        }
    }

    /// Runs one variant to its end. `None` when Spark failed, which only the bad one may.
    fn run(&self, args: &Args, folder: &Path, variant: &str, global: &Global) -> Result<Option<Outcome>> {
        if !global.quiet {
            output::remark(&format!("lab {:?}: running the variant {variant:?} on {}", args.lab, args.master));
        }
        std::fs::create_dir_all(logs(folder, variant))?;
        let errors = std::fs::File::create(folder.join(format!("{variant}.err")))?;
        let mut command = self.command(args, folder, variant);
        let output = command.stderr(errors).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        match (output.status.success(), variant) {
            (true, _) if outcome.is_some() => Ok(outcome),
            (_, "bad") => Ok(None),
            _ => bail!("variant {variant} failed: {}", last_lines(&folder.join(format!("{variant}.err")))),
        }
    }

    fn command(&self, args: &Args, folder: &Path, variant: &str) -> Command {
        let script = folder.join(args.lab.script());
        let mut options = vec!["--master".to_owned(), args.master.clone()];
        for conf in confs(args, folder, variant) {
            options.extend(["--conf".to_owned(), conf]);
        }
        let mut command = match self {
            Self::Submit(submit) => {
                let mut command = Command::new(submit);
                command.args(options).arg("--py-files").arg(folder.join("common.py")).arg(script);
                command
            }
            Self::Python(python) => {
                let mut command = Command::new(python);
                // PySpark splits this as a shell does.
                let quoted: Vec<String> = options.iter().map(|o| format!("'{}'", o.replace('\'', "'\\''"))).collect();
                command.env("PYSPARK_SUBMIT_ARGS", format!("{} pyspark-shell", quoted.join(" ")));
                command.env("PYSPARK_PYTHON", python).arg(script);
                command
            }
        };
        command.args(["--variant", variant, "--scale", &args.scale.to_string(), "--data"]).arg(folder);
        command
    }
}

fn confs(args: &Args, folder: &Path, variant: &str) -> Vec<String> {
    let mut confs = vec![
        "spark.eventLog.enabled=true".to_owned(),
        "spark.eventLog.rolling.enabled=false".to_owned(),
        format!("spark.eventLog.dir=file://{}", logs(folder, variant).display()),
        "spark.driver.memory=1g".to_owned(),
        "spark.ui.enabled=false".to_owned(),
    ];
    confs.extend(args.confs.iter().cloned());
    confs
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn has_pyspark(python: &Path) -> bool {
    let found = Command::new(python).args(["-c", "import pyspark"]).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn last_lines(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().rev().filter(|l| !l.trim().is_empty()).take(5).collect();
    lines.reverse();
    lines.join(" | ")
}
