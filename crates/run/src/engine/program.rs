//! What is started for a task, and what it leaves behind.

use super::Options;
use crate::book::{Program, TASK_RUN_ID, TASK_RUN_PROPERTY};
use crate::local::{Checkout, Handle, Launch, Packages};
use crate::settings::{Libraries, Work, is_inside, local};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Runs an entry point of a package.
const WHEEL: (&str, &str) = ("wheel.py", include_str!("python/wheel.py"));
/// Runs a notebook.
const NOTEBOOK: (&str, &str) = ("notebook.py", include_str!("python/notebook.py"));
/// Runs commands of dbt.
const DBT: (&str, &str) = ("dbt.py", include_str!("python/dbt.py"));
/// What a notebook finds in its namespace.
const DBUTILS: (&str, &str) = ("dbutils.py", include_str!("python/dbutils.py"));
/// What runs notebooks: newer ones work, too.
const KERNEL: [&str; 4] = ["nbclient>=0.10", "nbformat>=5.9", "ipykernel>=6.29", "nbconvert>=7.16"];

/// File with the values that a task sets for others: JSON objects, one a line.
const VALUES: &str = "values";
/// Environment variable that names it.
const TASK_VALUES: &str = "LAKESCOPE_TASK_VALUES";
/// File with the values that others have set.
const VALUES_OF_OTHERS: &str = "values-of-others.json";
/// File with what a notebook exits with.
const RESULT: &str = "result";
/// Largest value of a task, bytes of JSON.
const MOST_VALUE_BYTES: usize = 48 << 10;
/// Largest file of them.
const MOST_VALUES_BYTES: u64 = 4 << 20;
/// What is kept of the result of a notebook: the first bytes.
const MOST_RESULT_BYTES: u64 = 5 << 20;
/// Largest part of the text of a line that a message repeats, characters.
const SHOWN: usize = 80;

/// What is started for a program, or why nothing can be.
pub(super) fn launch(program: &Program, options: &Options, handle: &Handle) -> Result<Launch, String> {
    if let Some(kind) = program.libraries.others.first() {
        return Err(format!("a library of kind {kind} cannot be installed; use pypi, whl, requirements, jar or maven"));
    }
    let dir = std::path::absolute(&handle.dir).map_err(|error| format!("{}: {error}", handle.dir.display()))?;
    let mut start = Start::new(program, options, dir);
    match &program.work {
        Work::Python { file, parameters } => {
            let file = start.path(file)?;
            start.folder = file.parent().map(Path::to_owned);
            start.python(&file, parameters.clone());
        }
        Work::Wheel { package, entry_point, parameters, named } => {
            let script = start.file(WHEEL.0, WHEEL.1);
            let by_name = named.iter().map(|(name, value)| format!("--{name}={value}"));
            let words = [package, entry_point].into_iter().chain(parameters).cloned().chain(by_name);
            start.python(&script, words.collect());
        }
        Work::Notebook { path, parameters } => start.notebook(path, parameters, &program.values)?,
        Work::Dbt { project, profiles, commands } => start.dbt(project, profiles, commands)?,
        Work::SparkSubmit { parameters } => {
            let own = start.spark_options(&Libraries::default(), parameters);
            start.spark_submit(own.into_iter().chain(parameters.iter().cloned()).collect());
        }
        Work::SparkJar { jar, main_class, parameters } => start.spark_jar(jar, main_class, parameters)?,
        other => return Err(format!("{other:?} is no program")),
    }
    start.launch(handle)
}

/// A start on its way.
struct Start<'a> {
    program: &'a Program,
    options: &'a Options,
    dir: PathBuf,
    command: String,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    packages: Vec<String>,
    checkout: Option<Checkout>,
}

impl<'a> Start<'a> {
    fn new(program: &'a Program, options: &'a Options, dir: PathBuf) -> Self {
        let mut environment = options.environment.clone();
        // Lines come as they are written, not when a buffer is full.
        environment.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        environment.insert(TASK_VALUES.to_owned(), dir.join(VALUES).display().to_string());
        let checkout = program.git.as_ref().map(|source| {
            let folder = options.sources.join(program.run_id.to_string());
            Checkout { source: source.clone(), folder: std::path::absolute(&folder).unwrap_or(folder) }
        });
        Self {
            program,
            options,
            dir,
            checkout,
            command: String::new(),
            arguments: Vec::new(),
            folder: None,
            environment,
            files: BTreeMap::new(),
            packages: program.libraries.python.clone(),
        }
    }

    fn launch(mut self, handle: &Handle) -> Result<Launch, String> {
        let of_cluster = self.program.cluster.iter().flat_map(|cluster| cluster.spark_env_vars.clone());
        self.environment.extend(of_cluster.chain(self.program.environment.clone()));
        let folder = self.folder.unwrap_or_else(|| self.options.attempts.clone());
        let folder = std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let environments = std::path::absolute(&self.options.environments)
            .map_err(|error| format!("{}: {error}", self.options.environments.display()))?;
        let packages = Packages { python: self.options.python.clone(), requirements: self.packages, environments };
        Ok(Launch {
            epoch: handle.epoch,
            program: self.command,
            arguments: self.arguments,
            environment: self.environment,
            folder,
            files: self.files,
            checkout: self.checkout,
            packages: Some(packages).filter(|packages| !packages.requirements.is_empty()),
            ..Launch::default()
        })
    }

    /// A file that stands in the attempt folder.
    fn file(&mut self, name: &str, text: &str) -> PathBuf {
        self.files.insert(name.to_owned(), text.to_owned());
        self.dir.join(name)
    }

    /// A file of the repository, which is not there yet, or of this machine.
    fn path(&self, file: &str) -> Result<PathBuf, String> {
        match &self.checkout {
            Some(checkout) => inside(&checkout.folder, file),
            None => local_file(file),
        }
    }

    /// Runs commands in the folder of a project.
    fn dbt(&mut self, project: &str, profiles: &str, commands: &[String]) -> Result<(), String> {
        let folder = match &self.checkout {
            Some(checkout) => inside(&checkout.folder, project)?,
            None => PathBuf::from(local(project)),
        };
        if self.checkout.is_none() && !folder.is_absolute() {
            return Err(format!("project_directory {project:?} is no whole path, and the job has no git_source"));
        }
        if !profiles.is_empty() {
            let profiles = folder.join(profiles).display().to_string();
            self.environment.insert("DBT_PROFILES_DIR".to_owned(), profiles);
        }
        let script = self.file(DBT.0, DBT.1);
        self.folder = Some(folder);
        self.command = self.interpreter();
        self.arguments = [script.display().to_string()].into_iter().chain(commands.iter().cloned()).collect();
        Ok(())
    }

    /// That of the environment, which its `PATH` begins with, or that of the server.
    fn interpreter(&self) -> String {
        if self.packages.is_empty() { self.options.python.clone() } else { "python".to_owned() }
    }

    /// Runs a script: with a Spark session where a cluster is asked for.
    fn python(&mut self, script: &Path, parameters: Vec<String>) {
        let words = [script.display().to_string()].into_iter().chain(parameters);
        let spark = self.spark_options(&self.program.libraries, &[]);
        if self.program.cluster.is_some() {
            return self.spark_submit(spark.into_iter().chain(words).collect());
        }
        self.command = self.interpreter();
        self.arguments = words.collect();
        // For a session that it starts itself.
        let words: Vec<String> = spark.iter().map(|word| quoted(word)).collect();
        self.environment
            .entry("PYSPARK_SUBMIT_ARGS".to_owned())
            .or_insert_with(|| format!("{} pyspark-shell", words.join(" ")));
    }

    fn notebook(
        &mut self,
        path: &str,
        parameters: &BTreeMap<String, String>,
        values: &BTreeMap<String, Map<String, Value>>,
    ) -> Result<(), String> {
        // Of one in a repository the script finds the ending.
        let notebook = ["", ".py", ".ipynb"].iter().find_map(|ending| self.path(&format!("{path}{ending}")).ok());
        let notebook = notebook.ok_or_else(|| self.path(path).err().unwrap_or_default())?;
        self.folder = notebook.parent().map(Path::to_owned);
        self.packages.extend(KERNEL.map(str::to_owned));
        self.environment.insert("LAKESCOPE_NOTEBOOK_PARAMETERS".to_owned(), json!(parameters).to_string());
        self.file(DBUTILS.0, DBUTILS.1);
        self.file(VALUES_OF_OTHERS, &json!(values).to_string());
        let script = self.file(NOTEBOOK.0, NOTEBOOK.1);
        self.python(&script, vec![notebook.display().to_string()]);
        Ok(())
    }

    fn spark_jar(&mut self, jar: &str, main_class: &str, parameters: &[String]) -> Result<(), String> {
        let mut libraries = self.program.libraries.clone();
        let jar = match jar {
            // The older way: the JAR is the first of its libraries.
            "" if libraries.jars.is_empty() => {
                return Err("the task names no JAR; give it a library of kind jar".to_owned());
            }
            "" => libraries.jars.remove(0),
            jar => jar.to_owned(),
        };
        let mut words = self.spark_options(&libraries, &[]);
        words.extend(["--class".to_owned(), main_class.to_owned(), jar]);
        words.extend(parameters.iter().cloned());
        self.spark_submit(words);
        Ok(())
    }

    fn spark_submit(&mut self, arguments: Vec<String>) {
        self.command = match &self.options.spark_home {
            Some(home) => home.join("bin/spark-submit").display().to_string(),
            None => "spark-submit".to_owned(),
        };
        self.arguments = with_master(self.options, arguments);
    }

    /// Options of `spark-submit`: what the program needs, and what tells its application from others.
    fn spark_options(&self, libraries: &Libraries, given: &[String]) -> Vec<String> {
        let lists = [
            ("--jars", &libraries.jars),
            ("--packages", &libraries.maven),
            ("--repositories", &libraries.repositories),
            ("--exclude-packages", &libraries.exclusions),
        ];
        let mut words: Vec<String> = Vec::new();
        for (option, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            words.extend([option.to_owned(), list.join(",")]);
        }
        let task_run = self.program.environment.get(TASK_RUN_ID);
        let mut properties: Vec<String> = task_run.map(|id| format!("{TASK_RUN_PROPERTY}={id}")).into_iter().collect();
        let conf = self.program.cluster.iter().flat_map(|cluster| &cluster.spark_conf);
        let conf: Vec<String> = conf.map(|(name, value)| format!("{name}={value}")).collect();
        let stays = conf.iter().chain(given).any(|word| word.contains("spark.eventLog."));
        let stays = stays || runs_elsewhere(given) || runs_elsewhere(&conf);
        if let Some(folder) = self.options.event_logs.as_ref().filter(|_| !stays) {
            properties.push("spark.eventLog.enabled=true".to_owned());
            properties.push(format!("spark.eventLog.dir=file://{}", folder.display()));
        }
        // The last one of a name wins: the cluster's own.
        properties.extend(conf);
        words.extend(properties.into_iter().flat_map(|property| ["--conf".to_owned(), property]));
        words
    }
}

/// A path in a repository; references in it are resolved by now.
fn inside(repository: &Path, path: &str) -> Result<PathBuf, String> {
    match is_inside(path) {
        true => Ok(repository.join(path)),
        false => Err(format!("{path:?} is no path in the repository; give one from its root on, such as jobs/load.py")),
    }
}

/// Whether the driver is put on another machine, which has no folder of this one.
fn runs_elsewhere(words: &[String]) -> bool {
    let option = words.windows(2).any(|two| two[0] == "--deploy-mode" && two[1] == "cluster");
    option
        || words
            .iter()
            .any(|word| ["--deploy-mode=cluster", "spark.submit.deployMode=cluster"].contains(&word.as_str()))
}

/// A master that the task itself names wins.
fn with_master(options: &Options, arguments: Vec<String>) -> Vec<String> {
    let names_one = arguments.iter().any(|argument| argument == "--master" || argument.starts_with("--master="));
    match &options.spark_master {
        Some(master) if !names_one => ["--master".to_owned(), master.clone()].into_iter().chain(arguments).collect(),
        _ => arguments,
    }
}

/// A word as a shell reads it, which is how PySpark takes options apart.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A file of this machine, by its path or `file:` URL.
fn local_file(file: &str) -> Result<PathBuf, String> {
    let path = Path::new(local(file));
    if path.is_relative() || file.contains("://") && !file.starts_with("file:") {
        return Err(format!("{file:?} is no file of this machine; give its whole path, such as /jobs/load.py"));
    }
    match path.is_file() {
        true => Ok(path.to_owned()),
        false => Err(format!("there is no file {}; is it on the machine that runs the server?", path.display())),
    }
}

/// The values that a program has set, and what it exited with, or what is wrong with them.
pub(super) fn left_behind(dir: &Path) -> Result<(Map<String, Value>, Option<String>), String> {
    let result = beginning(&dir.join(RESULT), MOST_RESULT_BYTES)?;
    let lines = beginning(&dir.join(VALUES), MOST_VALUES_BYTES + 1)?.unwrap_or_default();
    if lines.len() as u64 > MOST_VALUES_BYTES {
        return Err(format!("the task wrote more than {MOST_VALUES_BYTES} bytes to {TASK_VALUES}; values are small"));
    }
    let mut values = Map::new();
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: String| format!("line {} of {TASK_VALUES} {why}", at + 1);
        let shown: String = line.chars().take(SHOWN).collect();
        let object: Map<String, Value> = serde_json::from_str(line).map_err(|error| {
            wrong(format!("must be a JSON object, such as {{\"rows\": 12}}, not {shown:?}: {error}"))
        })?;
        if let Some((name, _)) = object.iter().find(|(_, value)| value.to_string().len() > MOST_VALUE_BYTES) {
            return Err(wrong(format!("sets {name:?} to more than 48 KiB; write it to a table or a file instead")));
        }
        values.extend(object);
    }
    Ok((values, result))
}

/// The first bytes of a file that may not be there.
fn beginning(path: &Path, most: u64) -> Result<Option<String>, String> {
    let read = || -> io::Result<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Cluster;
    use std::time::Duration;

    #[test]
    fn files_are_named_by_their_whole_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        for name in [path.clone(), format!("file:{path}"), format!("file://{path}")] {
            assert_eq!(local_file(&name).as_deref(), Ok(file.path()), "{name}");
        }
        for (name, why) in
            [("load.py", "is no file of"), ("s3://b/load.py", "is no file of"), ("/no/such.py", "there is no")]
        {
            assert!(local_file(name).unwrap_err().contains(why), "{name}");
        }
    }

    #[test]
    fn files_of_a_repository_stay_in_it() {
        let folder = Path::new("/sources/1");
        assert_eq!(inside(folder, "jobs/load.py"), Ok(folder.join("jobs/load.py")));
        assert_eq!(inside(folder, ""), Ok(folder.join("")));
        for path in ["/etc/passwd", "file:/etc/passwd", "jobs/../../../x", "..", "file:///x"] {
            assert!(inside(folder, path).unwrap_err().contains("is no path in the repository"), "{path}");
        }
    }

    #[test]
    fn a_master_is_added_unless_one_is_named() {
        let options = Options { spark_master: Some("local[2]".to_owned()), ..options() };
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(with_master(&options, words(&["a.py"])), ["--master", "local[2]", "a.py"]);
        assert_eq!(with_master(&options, words(&["--master", "yarn", "a.py"])), ["--master", "yarn", "a.py"]);
        assert_eq!(with_master(&super::tests::options(), words(&["a.py"])), ["a.py"]);
    }

    /// What is started, words and variables that matter.
    #[test]
    fn programs_by_kind() {
        let file = tempfile::NamedTempFile::with_suffix(".py").unwrap();
        let path = file.path().display().to_string();
        let python = Work::Python { file: path.clone(), parameters: vec!["a b".to_owned()] };
        let wheel = Work::Wheel {
            package: "shop".to_owned(),
            entry_point: "load".to_owned(),
            parameters: Vec::new(),
            named: BTreeMap::from([("day".to_owned(), "mon".to_owned())]),
        };
        let jar =
            Work::SparkJar { jar: String::new(), main_class: "shop.Load".to_owned(), parameters: vec!["x".to_owned()] };
        let submit = ["--conf", "spark.eventLog.dir=/mine", "/a.py"].map(str::to_owned).to_vec();
        let elsewhere = ["--deploy-mode", "cluster", "/a.py"].map(str::to_owned).to_vec();
        let conf = "--conf spark.lakescope.taskRunId=7";
        let memory = "--conf spark.driver.memory=1g";
        let logs = "--conf spark.eventLog.enabled=true --conf spark.eventLog.dir=file:///logs";
        let libraries =
            Libraries { jars: vec!["/a.jar".to_owned()], maven: vec!["g:a:1".to_owned()], ..Libraries::default() };
        let with_package = Libraries { python: vec!["shop".to_owned()], ..Libraries::default() };
        for (work, with_cluster, libraries, wanted) in [
            (python.clone(), false, Libraries::default(), format!("python3 {path} a b")),
            (python.clone(), false, with_package.clone(), format!("python {path} a b")),
            (
                python,
                true,
                libraries.clone(),
                format!("/spark/bin/spark-submit --jars /a.jar --packages g:a:1 {conf} {logs} {memory} {path} a b"),
            ),
            (wheel, false, with_package, "python /attempts/7/wheel.py shop load --day=mon".to_owned()),
            (
                jar,
                true,
                libraries,
                format!("/spark/bin/spark-submit --packages g:a:1 {conf} {logs} {memory} --class shop.Load /a.jar x"),
            ),
            (
                Work::SparkSubmit { parameters: elsewhere },
                true,
                Libraries::default(),
                format!("/spark/bin/spark-submit {conf} {memory} --deploy-mode cluster /a.py"),
            ),
            (
                Work::SparkSubmit { parameters: submit },
                true,
                Libraries::default(),
                format!("/spark/bin/spark-submit {conf} {memory} --conf spark.eventLog.dir=/mine /a.py"),
            ),
        ] {
            let environment = BTreeMap::from([(TASK_RUN_ID.to_owned(), "7".to_owned())]);
            let spark_conf = BTreeMap::from([("spark.driver.memory".to_owned(), "1g".to_owned())]);
            let cluster = with_cluster.then(|| Cluster { spark_conf, ..Cluster::default() });
            let program =
                Program { run_id: 1, work, git: None, cluster, environment, libraries, values: BTreeMap::new() };
            let launch = launch(&program, &options(), &handle()).unwrap();
            let words: Vec<String> = [launch.program].into_iter().chain(launch.arguments).collect();
            assert_eq!(words.join(" "), wanted);
            assert_eq!(launch.environment[TASK_VALUES], "/attempts/7/values");
        }
    }

    #[test]
    fn values_are_lines_of_json() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(left_behind(dir.path()), Ok((Map::new(), None)));
        std::fs::write(dir.path().join(VALUES), "{\"rows\": 12}\n\n{\"rows\": 13, \"path\": \"/a\"}\n").unwrap();
        std::fs::write(dir.path().join(RESULT), "done").unwrap();
        let (values, result) = left_behind(dir.path()).unwrap();
        assert_eq!((Value::Object(values), result.as_deref()), (json!({ "rows": 13, "path": "/a" }), Some("done")));
        let large = format!("{{\"text\": \"{}\"}}", "x".repeat(MOST_VALUE_BYTES));
        for (text, why) in [
            ("{}\nrows=12\n", "line 2 of LAKESCOPE_TASK_VALUES must be a JSON object"),
            ("12", "line 1 of LAKESCOPE_TASK_VALUES must be a JSON object"),
            (large.as_str(), "sets \"text\" to more than 48 KiB"),
        ] {
            std::fs::write(dir.path().join(VALUES), text).unwrap();
            let error = left_behind(dir.path()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn words_are_quoted_as_shells_read_them() {
        for (word, wanted) in
            [("a=b", "a=b"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("local[2]", "'local[2]'")]
        {
            assert_eq!(quoted(word), wanted);
        }
    }

    fn handle() -> Handle {
        Handle { dir: PathBuf::from("/attempts/7"), epoch: 1 }
    }

    fn options() -> Options {
        Options {
            attempts: PathBuf::from("/attempts"),
            shim: PathBuf::from("/proc/self/exe"),
            slots: 1,
            python: "python3".to_owned(),
            environments: PathBuf::from("/environments"),
            sources: PathBuf::from("/sources"),
            output_stays: Duration::from_secs(3_600),
            spark_home: Some(PathBuf::from("/spark")),
            spark_master: None,
            event_logs: Some(PathBuf::from("/logs")),
            grace: Duration::from_secs(1),
            environment: BTreeMap::new(),
            give_up_after: Duration::from_secs(1),
            watching: None,
        }
    }
}
