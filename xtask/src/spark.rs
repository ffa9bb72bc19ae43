//! Finding, and where needed installing, a real Spark for tests and measurements.

use anyhow::{Context, Result, bail};
use start::{root, run, target_folder};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The PySpark release that tests, the sample and the comparison with the history server use.
pub const VERSION: &str = "4.0.1";

/// A Python with PySpark.
pub struct Spark {
    /// Python interpreter.
    pub python: PathBuf,
    /// Spark's folder, the value of `SPARK_HOME`.
    pub home: PathBuf,
}

/// The Spark of `LAKESCOPE_SPARK_PYTHON`, else a virtual environment under `target/`, made on
/// first use with pip. Needs Python 3 and Java 17.
pub fn find() -> Result<Spark> {
    if let Some(python) = std::env::var_os("LAKESCOPE_SPARK_PYTHON") {
        return at(Path::new(&python));
    }
    let folder = target_folder().join(format!("spark-{VERSION}"));
    let python = folder.join("bin/python");
    if at(&python).is_err() {
        install(&folder)?;
    }
    at(&python)
}

fn install(folder: &Path) -> Result<()> {
    println!("installing PySpark {VERSION} into {}", folder.display());
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let package = format!("pyspark=={VERSION}");
    run(Command::new(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet", &package]))
}

fn at(python: &Path) -> Result<Spark> {
    let code = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";
    let output = Command::new(python).args(["-c", code]).output().context("cannot run Python")?;
    if !output.status.success() {
        bail!("{} has no PySpark", python.display());
    }
    let home = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    Ok(Spark { python: python.to_owned(), home })
}

/// Where samples are made: the one path that gets into their logs, so that it is the same for all.
const SHOP: &str = "/tmp/shop";

/// Laboratories whose bad variants are bundled.
const LABS: [&str; 4] = ["oom", "spill", "shuffle", "small-files"];

/// Makes the bundled samples again.
pub fn sample() -> Result<()> {
    let spark = find()?;
    run(Command::new(&spark.python).arg(root().join("samples/shop_daily.py")).env("SPARK_HOME", &spark.home))?;
    let binary = crate::lakescope_binary()?;
    for lab in LABS {
        lab_sample(&spark, &binary, lab)?;
    }
    Ok(())
}

/// The log of a laboratory's bad variant. Spark is reached through a link and told another user,
/// home and host, so that nothing of the machine gets into the log.
fn lab_sample(spark: &Spark, binary: &Path, lab: &str) -> Result<()> {
    let shop = Path::new(SHOP);
    let _ = std::fs::remove_dir_all(shop);
    std::fs::create_dir_all(shop)?;
    std::os::unix::fs::symlink(&spark.home, shop.join("spark"))?;
    let folder = shop.join("lab");
    run(Command::new(binary)
        .args(["lab", lab, "--scale", "0.6", "--quiet", "--conf", "spark.eventLog.compress=true"])
        .args(["--conf", "spark.driver.host=localhost", "--keep"])
        .arg(&folder)
        .arg("--spark-submit")
        .arg(shop.join("spark/bin/spark-submit"))
        .current_dir(shop)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("SPARK_HOME", shop.join("spark"))
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("SPARK_LOCAL_HOSTNAME", "localhost")
        .env("SPARK_USER", "spark")
        .env("PYSPARK_PYTHON", &spark.python)
        .env("JDK_JAVA_OPTIONS", "-Duser.name=spark -Duser.home=/tmp/shop -Dos.version=6.1"))?;
    let log = std::fs::read_dir(folder.join("bad-log"))?.next().context("the bad variant left no log")??;
    std::fs::copy(log.path(), root().join(format!("samples/lab_{lab}.zstd")))?;
    std::fs::remove_dir_all(shop)?;
    Ok(())
}
