//! What the program of a task needs besides itself.

use serde_json::Value;
use std::collections::BTreeMap;

/// Packages and JARs of a task: those of its environment, then its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// Python packages: lines of a requirements file.
    pub python: Vec<String>,
    /// Paths or URLs of JARs.
    pub jars: Vec<String>,
    /// JARs by Maven coordinates, `group:artifact:version`.
    pub maven: Vec<String>,
    /// Where these are looked for besides Maven Central.
    pub repositories: Vec<String>,
    /// What these need and is left out, `group:artifact`.
    pub exclusions: Vec<String>,
    /// Kinds that can be stored, but not installed here.
    pub others: Vec<String>,
}

/// Packages of each environment by its key.
pub(super) fn environments(list: &[Value]) -> BTreeMap<String, Vec<String>> {
    let lines = |value: &Value| value.as_array().map(|lines| lines.iter().filter_map(line).collect());
    let one = |item: &Value| {
        Some((item["environment_key"].as_str()?.to_owned(), lines(&item["spec"]["dependencies"]).unwrap_or_default()))
    };
    list.iter().filter_map(one).collect()
}

/// A line of a requirements file; `None` for one that says nothing.
fn line(value: &Value) -> Option<String> {
    let line = value.as_str()?.trim();
    (!line.is_empty() && !line.starts_with('#')).then(|| line.to_owned())
}

impl Libraries {
    /// Adds one of the `libraries` of a task, or says what is wrong with it.
    pub(super) fn add(&mut self, library: &Value) -> Result<(), String> {
        let kinds: Vec<(&String, &Value)> = library.as_object().into_iter().flatten().collect();
        let [(kind, value)] = kinds.as_slice() else {
            return Err("must be one of pypi, whl, requirements, jar, maven".to_owned());
        };
        self.add_of(kind, value).ok_or_else(|| format!("must say what is to be installed by {kind}"))
    }

    fn add_of(&mut self, kind: &str, value: &Value) -> Option<()> {
        match kind {
            "pypi" => {
                self.python.extend(value["repo"].as_str().map(|repo| format!("--extra-index-url {repo}")));
                self.python.push(line(&value["package"])?);
            }
            "whl" => self.python.push(local(value.as_str()?).to_owned()),
            "requirements" => self.python.push(format!("-r {}", local(value.as_str()?))),
            "jar" => self.jars.push(value.as_str()?.to_owned()),
            "maven" => {
                self.maven.push(value["coordinates"].as_str()?.to_owned());
                self.repositories.extend(value["repo"].as_str().map(str::to_owned));
                let exclusions = value["exclusions"].as_array().into_iter().flatten();
                self.exclusions.extend(exclusions.filter_map(|one| one.as_str().map(str::to_owned)));
            }
            other => self.others.push(other.to_owned()),
        }
        Some(())
    }
}

/// The path in a `file:` URL; any other text as it is.
pub(crate) fn local(file: &str) -> &str {
    file.strip_prefix("file:").map_or(file, |path| path.strip_prefix("//").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn libraries_become_what_installers_read() {
        let list = [
            json!({ "pypi": { "package": "pandas==2.3.0" } }),
            json!({ "pypi": { "package": "inner", "repo": "https://example.com/simple" } }),
            json!({ "whl": "file:///wheels/shop-1.0-py3-none-any.whl" }),
            json!({ "requirements": "/jobs/requirements.txt" }),
            json!({ "jar": "/jars/a.jar" }),
            json!({ "maven": { "coordinates": "io.delta:delta-spark_2.13:4.0.0", "repo": "https://example.com/maven",
                "exclusions": ["org.slf4j:slf4j-api"] } }),
            json!({ "cran": { "package": "ada" } }),
        ];
        let environments = environments(&[json!({ "environment_key": "default", "spec":
            { "dependencies": ["# pinned", " numpy<3 ", ""] } })]);
        let mut read = Libraries { python: environments["default"].clone(), ..Libraries::default() };
        list.iter().for_each(|library| read.add(library).unwrap());
        let python = [
            "numpy<3",
            "pandas==2.3.0",
            "--extra-index-url https://example.com/simple",
            "inner",
            "/wheels/shop-1.0-py3-none-any.whl",
            "-r /jobs/requirements.txt",
        ];
        assert_eq!(read.python, python);
        assert_eq!(
            (read.jars, read.maven),
            (vec!["/jars/a.jar".to_owned()], vec!["io.delta:delta-spark_2.13:4.0.0".to_owned()])
        );
        assert_eq!(read.repositories, ["https://example.com/maven"]);
        assert_eq!((read.exclusions, read.others), (vec!["org.slf4j:slf4j-api".to_owned()], vec!["cran".to_owned()]));
    }

    #[test]
    fn a_library_that_is_none_is_named() {
        for (library, message) in [
            (json!("pandas"), "must be one of pypi"),
            (json!({}), "must be one of pypi"),
            (json!({ "whl": "/a.whl", "jar": "/a.jar" }), "must be one of pypi"),
            (json!({ "pypi": { "name": "pandas" } }), "must say what is to be installed by pypi"),
        ] {
            let error = Libraries::default().add(&library).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
