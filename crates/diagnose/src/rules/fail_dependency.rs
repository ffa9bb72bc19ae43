//! FAIL_DEPENDENCY: a class, method or module is not there, or another version of it is
//! (section 4.5). It comes before a loss of heartbeats that follows.

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at linkage and import errors.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Dependency, dependency);
}

/// Who owns a package, and where its other copy usually comes from.
const OWNERS: [(&str, &str, &str); 18] = [
    ("com.google.common", "Guava", "older copy on the cluster class path"),
    ("com.google.protobuf", "Protobuf", "older copy on the cluster class path"),
    ("com.fasterxml.jackson", "Jackson", "Spark's own copy wins"),
    ("io.netty", "Netty", "Spark's own copy wins"),
    ("org.apache.hadoop.fs.s3a", "hadoop-aws", "must be of the same version as Hadoop"),
    ("com.amazonaws", "AWS SDK", "must fit hadoop-aws"),
    ("software.amazon.awssdk", "AWS SDK v2", "must fit hadoop-aws"),
    ("org.apache.hadoop", "Hadoop", "another version than the cluster's"),
    ("org.apache.http", "Apache HttpClient", "older copy on the cluster class path"),
    ("io.delta", "Delta Lake", "must fit the Spark version"),
    ("org.apache.iceberg", "Iceberg", "must fit the Spark and Scala version"),
    ("org.apache.spark.sql.kafka", "spark-sql-kafka", "must be of the Spark version"),
    ("org.apache.kafka", "Kafka clients", "comes with spark-sql-kafka"),
    ("scala.", "Scala", "built for another Scala version"),
    ("org.apache.spark", "Spark", "built against another Spark version"),
    ("org.postgresql", "PostgreSQL driver", "not among the jars"),
    ("com.mysql", "MySQL driver", "not among the jars"),
    ("com.microsoft.sqlserver", "SQL Server driver", "not among the jars"),
];

fn dependency(f: &Failure<'_>) -> Draft {
    let text = f.text();
    if has_any(&text, &["different version", "different minor", "PYTHON_VERSION_MISMATCH"]) {
        return python_version(f, &text);
    }
    match find(r#"No module named '?"?([\w.]+)"#, &text).map(|m| m[1].to_owned()) {
        Some(module) => module_missing(f, &module),
        None => class_missing(f, &text),
    }
}

fn python_version(f: &Failure<'_>, text: &str) -> Draft {
    let found = find(r"version[^\d]*(\d+\.\d+)\D+?(\d+\.\d+)", text);
    let (worker, driver) = found.map_or((String::new(), String::new()), |m| (m[1].to_owned(), m[2].to_owned()));
    f.draft(format!("the workers run Python {worker}, the driver runs {driver}"))
        .evidence("missing", "the same Python minor version", "")
        .evidence("worker_python", worker, "")
        .evidence("driver_python", driver.clone(), "")
        .evidence("library", "Python", "")
        .remedy(RemedyKind::Conf, format!("Use Python {driver} on both sides: spark.pyspark.python and spark.pyspark.driver.python (PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON), or ship the environment with spark.archives"))
        .useless("more memory", "the worker refuses to start")
        .confirm("the version that both sides print at start")
}

fn module_missing(f: &Failure<'_>, module: &str) -> Draft {
    let package = module.split('.').next().unwrap_or(module).to_owned();
    let on_worker = f.first.task_id.is_some() || f.text().contains("worker");
    let place = if on_worker { "on the executors" } else { "on the driver" };
    f.draft(format!("Python module {module} is missing {place}"))
        .evidence("missing", module, "")
        .evidence("library", package.clone(), "")
        .not("a memory problem of Python", "the worker says which module it misses")
        .remedy(RemedyKind::Ops, format!("Install {package} {place} as well: cluster library, --py-files for own modules, or a packed environment in spark.archives"))
        .snippet(format!("pip install {package}   # in the environment that every node uses"))
        .useless("installing it on the driver only", "functions are unpickled on the executors")
        .useless("more retries", "each executor lacks it in the same way")
        .confirm("an import of it inside a task")
}

fn class_missing(f: &Failure<'_>, text: &str) -> Draft {
    let missing = missing_name(f);
    let owner = owner(&missing, text);
    let library = owner.map_or_else(|| package_of(&missing), |(name, why)| format!("{name} ({why})"));
    let name = owner.map_or_else(|| package_of(&missing), |(name, _)| name.to_owned());
    let conflict = has_any(
        text,
        &[
            "NoSuchMethodError",
            "NoSuchFieldError",
            "AbstractMethodError",
            "IncompatibleClassChange",
            "IllegalAccessError",
            "VerifyError",
            "LinkageError",
            "InvalidClassException",
            "UnsupportedClassVersion",
        ],
    );
    let what = if conflict { "another version is loaded" } else { "it is not on the class path" };
    let class = Some(f.class()).filter(|class| !class.is_empty() && *class != missing);
    let error = class.map_or_else(String::new, |class| format!("{class}: "));
    let title = format!("{error}{missing}: {what} (library: {library})");
    let draft = f.draft(title).evidence("missing", missing, "").evidence("library", library, "").evidence(
        "class",
        f.class(),
        "",
    );
    let draft = with_heartbeats(f, draft);
    let draft = match conflict {
        true => draft
            .remedy(RemedyKind::Code, format!("Shade or pin {name}: relocate it in the application jar (shade plugin), or depend on the version that the cluster has"))
            .remedy(RemedyKind::Conf, "Or let the application's copy win: spark.executor.userClassPathFirst=true and spark.driver.userClassPathFirst=true"),
        false => draft
            .remedy(RemedyKind::Conf, format!("Ship {name} with the application: spark.jars.packages or --packages, built for this Spark and Scala version; jars on executors as well as on the driver"))
            .remedy(RemedyKind::Code, "Or build it into the application jar"),
    };
    draft
        .useless("more retries", "every executor loads the same class path")
        .confirm("the class is loaded, in the version wanted")
}

/// What is missing, as code writes it: `com.google.common.util.concurrent.MoreExecutors.directExecutor`.
fn missing_name(f: &Failure<'_>) -> String {
    let message = f.first.message.as_str();
    let quoted = find(r"(?:Failed to find (?:the )?data source:?|data source) `?([\w.-]+)", message)
        .or_else(|| find(r#"(?i)filesystem for scheme[: ]+"?(\w+)"#, message))
        .or_else(|| find(r"'(?:\S+ )?([\w.$/]+)\(", message));
    let name = quoted
        .map_or_else(|| message.split(['(', ' ', ';', ',']).next().unwrap_or_default().to_owned(), |m| m[1].to_owned());
    let name = name.replace('/', ".");
    let name = name.trim_end_matches(['.', ':']);
    if name.is_empty() { f.class().to_owned() } else { name.to_owned() }
}

fn owner(missing: &str, text: &str) -> Option<(&'static str, &'static str)> {
    let by_name = OWNERS.iter().find(|(prefix, ..)| missing.starts_with(prefix));
    let by_scheme = match missing {
        "s3a" | "s3" | "s3n" => Some(("hadoop-aws", "not among the jars")),
        "abfss" | "abfs" | "wasbs" => Some(("hadoop-azure", "not among the jars")),
        "gs" => Some(("gcs-connector", "not among the jars")),
        "kafka" => Some(("spark-sql-kafka", "not among the jars")),
        "delta" => Some(("Delta Lake", "not among the jars")),
        _ if text.contains("UnsupportedClassVersion") => {
            Some(("Java", "compiled for a newer Java than the cluster runs"))
        }
        _ => None,
    };
    by_name.map(|(_, name, why)| (*name, *why)).or(by_scheme)
}

fn package_of(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    parts[..parts.len().min(3)].join(".")
}

/// Losses of heartbeats that it explains.
fn with_heartbeats(f: &Failure<'_>, draft: Draft) -> Draft {
    let blame = &f.cx.blame;
    let explained = blame.troubles.iter().find(|t| t.cause == Cause::Heartbeat && t.caused_by == Some(f.at));
    let Some(trouble) = explained else { return draft };
    let summary = super::fail_heartbeat::summary(blame, trouble);
    draft.evidence("secondary", format!("FAIL_HEARTBEAT: {summary}"), "").not(
        "lost heartbeats",
        format!("they come after the error ({summary}): the thread that would send them died of it"),
    )
}
