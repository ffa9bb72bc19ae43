//! From a stage to a line of the user's code (section 3 of the rules): never invented.

use model::{Application, SqlExecution, Stage};

/// First frame outside Spark and the runtimes.
const FOREIGN: [&str; 9] =
    ["org.apache.spark.", "py4j.", "java.", "scala.", "jdk.", "sun.", "java.base/", "com.databricks.", "io.delta."];

/// The line that a stage works for.
#[must_use]
pub fn of_stage(app: &Application, stage: &Stage) -> Option<String> {
    let frame = user_frame(&stage.details);
    let own = |call_site: &str| usable(call_site).filter(|place| !is_frame_of(&stage.details, place));
    frame.or_else(|| own(&stage.name)).or_else(|| stage.call_site.as_deref().and_then(own)).or_else(|| {
        let sql = stage.sql.and_then(|id| app.sql(id))?;
        of_sql(sql)
    })
}

/// The line that an SQL execution works for.
#[must_use]
pub fn of_sql(sql: &SqlExecution) -> Option<String> {
    user_frame(&sql.details).or_else(|| usable(&sql.description).filter(|place| !is_frame_of(&sql.details, place)))
}

/// Whether a place is a frame of this stack. A stack without a user's frame is all Spark's and the
/// JVM's, so a place in it (`FutureTask.java:264`) is theirs.
fn is_frame_of(stack: &str, place: &str) -> bool {
    stack.contains(&format!("({place})"))
}

/// First line of a stack that is not Spark's, Scala's, Java's or the Python gateway's.
#[must_use]
pub fn user_frame(stack: &str) -> Option<String> {
    let frame = stack.lines().map(str::trim).find(|l| !l.is_empty() && !FOREIGN.iter().any(|f| l.starts_with(f)))?;
    (frame.contains(':') || frame.contains('(')).then(|| without_shell_names(frame).to_owned())
}

/// A line typed into a shell has a wrapper's name around it: `$line15.$read$$iw.<init>(<console>:25)`.
fn without_shell_names(frame: &str) -> &str {
    match frame.find("(<console>:") {
        Some(at) => frame[at + 1..].trim_end_matches(')'),
        None => frame,
    }
}

/// `collect at jobs/report.py:10` names a line; `collect at NativeMethodAccessorImpl.java:0` does not.
fn usable(call_site: &str) -> Option<String> {
    let (_, place) = call_site.rsplit_once(" at ")?;
    let hidden = place.starts_with("NativeMethodAccessorImpl") || place.starts_with("<unknown>");
    let (file, line) = place.rsplit_once(':')?;
    (!hidden && !file.is_empty() && line.parse::<u32>().is_ok_and(|n| n > 0)).then(|| place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_users_line_or_none() {
        let stack =
            "org.apache.spark.sql.Dataset.collect(Dataset.scala:1)\nshop.Daily$.main(Daily.scala:42)\njava.lang.X";
        assert_eq!(user_frame(stack).as_deref(), Some("shop.Daily$.main(Daily.scala:42)"));
        assert_eq!(usable("collect at /app/jobs/report.py:10").as_deref(), Some("/app/jobs/report.py:10"));
        assert_eq!(usable("parquet at NativeMethodAccessorImpl.java:0"), None);
        assert_eq!(usable("plain text"), None);
        assert_eq!(user_frame("$line15.$read$$iw.<init>(<console>:25)").as_deref(), Some("<console>:25"));
        assert!(is_frame_of("java.util.concurrent.FutureTask.run(FutureTask.java:264)", "FutureTask.java:264"));
    }
}
