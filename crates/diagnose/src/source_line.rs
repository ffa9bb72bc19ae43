//! From a stage to a line of the user's code (section 3 of the rules): never invented.

use model::{Application, Stage};

/// First frame outside Spark and the runtimes.
const FOREIGN: [&str; 9] =
    ["org.apache.spark.", "py4j.", "java.", "scala.", "jdk.", "sun.", "java.base/", "com.databricks.", "io.delta."];

/// The line that a stage works for.
#[must_use]
pub fn of_stage(app: &Application, stage: &Stage) -> Option<String> {
    let frame = user_frame(&stage.details);
    frame.or_else(|| usable(&stage.name)).or_else(|| stage.call_site.as_deref().and_then(usable)).or_else(|| {
        let sql = stage.sql.and_then(|id| app.sql(id))?;
        user_frame(&sql.details).or_else(|| usable(&sql.description))
    })
}

/// First line of a stack that is not Spark's, Scala's, Java's or the Python gateway's.
#[must_use]
pub fn user_frame(stack: &str) -> Option<String> {
    let frame = stack.lines().map(str::trim).find(|l| !l.is_empty() && !FOREIGN.iter().any(|f| l.starts_with(f)))?;
    (frame.contains(':') || frame.contains('(')).then(|| frame.to_owned())
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
    }
}
