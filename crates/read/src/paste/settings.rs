//! Settings between words, `--conf`, properties files, `SET`, Python and Scala calls.

use super::{MAX_ROWS, pattern};
use model::Application;
use regex::Regex;
use std::sync::LazyLock;

/// `spark.a.b=1`, `spark.a.b = 1`, `"spark.a.b": "1"`, `.config("spark.a.b", 1)`.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"\b(spark(?:\.[A-Za-z][\w-]*)+)["'`]?(?:\s*[=:]\s*|\s*,\s*)(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,;)"']+))"#)
});

/// `spark.a.b  1` of a properties file.
static PROPERTY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^\s*(spark(?:\.[A-Za-z][\w-]*)+)[ \t]+([\w./:-]*[\d/]\w*|true|false|TRUE|FALSE)\s*$")
});

static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:\b[Ss]park(?: version)?|\bversion of Spark|Apache-Spark)[ /:]+v?(\d+\.\d+(?:\.\d+)?)\b")
});

/// Reads settings and Spark's version from the lines that are no part of a failure: an error
/// that recommends a setting has not set it.
pub(super) fn read(prose: &str, app: &mut Application) {
    for found in ASSIGNED.captures_iter(prose).take(MAX_ROWS) {
        let value = [2, 3, 4].into_iter().find_map(|group| found.get(group)).map_or("", |m| m.as_str());
        put(app, &found[1], value);
    }
    for found in PROPERTY.captures_iter(prose).take(MAX_ROWS) {
        put(app, &found[1], &found[2]);
    }
    if let Some(found) = VERSION.captures(prose) {
        app.spark_version = found[1].into();
    }
}

fn put(app: &mut Application, key: &str, value: &str) {
    let value = value.trim().trim_end_matches(['.', '`']);
    if !value.is_empty() && !matches!(value, "not" | "is" | "unset") {
        app.environment.spark.insert(key.into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_setting() {
        let mut app = Application::default();
        let text = "spark.a.one=1\n--conf spark.a.two=2g \\\nspark.a.three = 10000 (default), spark.a.four = 200\n\
            SparkSession.builder.config(\"spark.a.five\", \"5m\")\nspark.conf.set('spark.a.six', 6)\nspark.a.seven   true\n\
            env: SPARK_LOCAL_DIRS not set, spark.local.dir not set\nSET spark.a.eight=-1;\n{\"spark.a.nine\": \"9\"}\nSpark 3.1.2 behind";
        read(text, &mut app);
        for (key, value) in [
            ("one", "1"),
            ("two", "2g"),
            ("three", "10000"),
            ("four", "200"),
            ("five", "5m"),
            ("six", "6"),
            ("seven", "true"),
            ("eight", "-1"),
            ("nine", "9"),
        ] {
            assert_eq!(app.conf(&format!("spark.a.{key}")), Some(value), "{key}");
        }
        assert_eq!(app.conf("spark.local.dir"), None);
        assert_eq!(&*app.spark_version, "3.1.2");
    }
}
