//! Tasks as real processes: `/bin/sh` is the program, the shim is the binary `run-shim`.
#![cfg(target_os = "linux")]

mod cost;
mod crash;
mod fault;
mod output;
mod packages;
mod stop;

use run::local::{self, Exit, ForkServer, Handle, How, Launch, Limits, Observed, Secret};
use run::{Code, LifeCycle, Outcome};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Far more than any wait here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

const SHIM: &str = env!("CARGO_BIN_EXE_run-shim");

fn shims() -> &'static ForkServer {
    static SHIMS: LazyLock<ForkServer> = LazyLock::new(|| ForkServer::new(SHIM.into()));
    &SHIMS
}

/// A shell with a script; its first argument is the folder of the test.
fn script(folder: &Path, text: &str) -> Launch {
    Launch {
        epoch: 1,
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), text.into(), "sh".into(), folder.to_str().unwrap().into()],
        environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        folder: folder.to_owned(),
        ..Launch::default()
    }
}

/// A folder that goes away with all that still runs in it.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn attempt(&self) -> PathBuf {
        self.path().join("attempts/17-1")
    }

    fn handle(&self) -> Handle {
        Handle { dir: self.attempt(), epoch: 1 }
    }

    fn launch(&self, launch: &Launch) -> Handle {
        local::launch(shims(), &self.attempt(), launch).unwrap()
    }

    fn launch_script(&self, text: &str) -> Handle {
        self.launch(&script(self.path(), text))
    }

    fn run(&self, text: &str) -> Exit {
        exit(&self.launch_script(text))
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    fn output(&self, name: &str) -> String {
        std::fs::read_to_string(self.attempt().join(name)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = local::sweep(&self.handle());
    }
}

fn exit(handle: &Handle) -> Exit {
    match local::wait(handle, LONG).unwrap() {
        Observed::Exited(exit) => exit,
        other => panic!("{} {other:?}", handle.dir.display()),
    }
}

fn alive(handle: &Handle) -> local::Process {
    match local::observe(handle).unwrap() {
        Observed::Alive(process) => process,
        other => panic!("{other:?}"),
    }
}

fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < LONG, "{what} did not come to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn pid_in(text: &str) -> i32 {
    text.trim().parse().unwrap()
}

/// A number of `started.json`: that of the program, or of the shim.
fn started_pid(handle: &Handle, of_shim: bool) -> i32 {
    let text = std::fs::read(handle.dir.join("started.json")).unwrap();
    let started: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let pid = if of_shim { &started["shim"]["pid"] } else { &started["pid"] };
    pid.as_i64().unwrap().try_into().unwrap()
}

fn kill(pid: i32) {
    assert!(Command::new("/bin/kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn exit_codes_come_back() {
    for (code, outcome) in [(0, Outcome::Success), (7, Outcome::Failed)] {
        let world = World::new();
        let exit = world.run(&format!("exit {code}"));
        assert_eq!((&exit.how, exit.stopped, exit.left_running), (&How::Code(code), false, false));
        assert_eq!(exit.end().outcome, Some(outcome));
        assert!(exit.ended_ms >= exit.started_ms && exit.started_ms > 1_700_000_000_000);
        assert_eq!((exit.stdout.bytes, exit.stderr.bytes, exit.log_error), (0, 0, None));
    }
}

#[test]
fn death_by_a_signal_comes_back() {
    let world = World::new();
    assert_eq!(world.run("kill -SEGV $$").how, How::Signal(11));
}

#[test]
fn what_it_took_comes_back() {
    let world = World::new();
    let exit = world.run(
        "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; head -c 30000000 /dev/zero | tail -c 30000000 | wc -c",
    );
    let cpu_ms = exit.usage.user_ms + exit.usage.system_ms;
    assert!(cpu_ms > 20, "{exit:?}");
    assert!((25_000_000..200_000_000).contains(&exit.usage.max_rss_bytes), "{exit:?}");
}

#[test]
fn arguments_and_environment_are_as_they_were_given() {
    let world = World::new();
    let odd = ["$HOME; *", "", "a\nb", "'\"\\", "ü"];
    let mut launch = script(world.path(), r#"printf '<%s>' "$@"; echo; cat; env"#);
    launch.arguments.extend(odd.map(str::to_owned));
    launch.environment.insert("COLOUR".into(), "$(date)".into());
    launch.environment.insert(local::ATTEMPT.into(), "of another".into());
    exit(&world.launch(&launch));
    let out = world.output("stdout");
    let arguments = format!("<{}><$HOME; *><><a\nb><'\"\\><ü>\n", world.path().display());
    let environment = out.strip_prefix(&arguments).unwrap_or_else(|| panic!("{out}"));
    let mut environment: Vec<&str> = environment.lines().collect();
    environment.sort_unstable();
    let dir = format!("LAKESCOPE_ATTEMPT_DIR={}", world.attempt().display());
    let pwd = format!("PWD={}", world.path().display());
    assert_eq!(environment, ["COLOUR=$(date)", "LAKESCOPE_ATTEMPT=17-1:1", &dir, "PATH=/usr/bin:/bin", &pwd]);
}

#[test]
fn a_program_is_looked_up_in_the_path_of_the_task() {
    let world = World::new();
    let launch = Launch { program: "sh".into(), ..script(world.path(), "exit 3") };
    assert_eq!(exit(&world.launch(&launch)).how, How::Code(3));
}

#[test]
fn a_program_or_folder_that_is_missing_is_named() {
    for (program, folder, words) in [
        ("/bin/no-such", "/tmp", ["program `/bin/no-such`", "No such file", "check its path"]),
        ("no-such", "/tmp", ["program `no-such`", "No such file", "`PATH` of the task"]),
        ("/etc/passwd", "/tmp", ["program `/etc/passwd`", "Permission denied", "its rights"]),
        ("/bin/sh", "/no/such", ["working folder `/no/such`", "No such file", "create it"]),
    ] {
        let world = World::new();
        let launch = Launch { program: program.into(), folder: folder.into(), ..script(world.path(), "exit 0") };
        let exit = exit(&world.launch(&launch));
        let How::Failed(message) = &exit.how else { panic!("{exit:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert_eq!(exit.end().code, Code::InvalidRunConfiguration);
    }
}

#[test]
fn a_start_is_recorded_before_the_program_runs() {
    let world = World::new();
    let handle = world.launch_script("cat $LAKESCOPE_ATTEMPT_DIR/started.json; echo; echo $$");
    exit(&handle);
    let out = world.output("stdout");
    let (record, pid) = out.trim().split_once('\n').unwrap();
    assert_eq!(record, world.output("started.json"));
    assert_eq!(pid_in(pid), started_pid(&handle, false));
}

#[test]
fn the_shim_leads_a_session_and_the_task_a_group() {
    let world = World::new();
    let handle = world.launch_script("cat /proc/$$/stat");
    exit(&handle);
    let out = world.output("stdout");
    let fields: Vec<&str> = out.split_once(") ").unwrap().1.split(' ').collect();
    let (task, shim) = (started_pid(&handle, false).to_string(), started_pid(&handle, true).to_string());
    assert_eq!(fields[1..4], [shim.as_str(), task.as_str(), shim.as_str()]);
}

#[test]
fn an_ended_shim_leaves_no_zombie() {
    let world = World::new();
    let handle = world.launch_script("sleep 0.05");
    exit(&handle);
    let entry = format!("/proc/{}", started_pid(&handle, true));
    eventually("its end", || !Path::new(&entry).exists());
}

#[test]
fn launching_twice_runs_once() {
    let world = World::new();
    let launch = script(world.path(), "echo x >> $1/lines; sleep 0.1");
    let first = world.launch(&launch);
    assert_eq!(world.launch(&launch), first);
    exit(&first);
    assert_eq!(world.launch(&launch), first);
    assert_eq!(world.text("lines"), "x\n");
    let other = local::launch(shims(), &world.attempt(), &Launch { epoch: 2, ..launch }).unwrap_err();
    assert_eq!(other.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(other.to_string().contains("belongs to epoch 1"), "{other}");
    assert!(matches!(local::observe(&Handle { epoch: 2, ..first }).unwrap(), Observed::NotStarted));
}

#[test]
fn of_many_shims_one_runs_the_task() {
    let world = World::new();
    std::fs::create_dir_all(world.attempt()).unwrap();
    let launch = script(world.path(), "echo x >> $1/lines; sleep 0.05");
    std::fs::write(world.attempt().join("launch.json"), serde_json::to_vec(&launch).unwrap()).unwrap();
    let shims: Vec<_> = (0..8)
        .map(|_| {
            let mut command = Command::new(SHIM);
            command.arg("shim").arg(world.attempt()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let answers = shims.into_iter().map(|shim| String::from_utf8(shim.wait_with_output().unwrap().stdout).unwrap());
    let (started, busy): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.contains("started"));
    assert_eq!((started.len(), busy.len()), (1, 7), "{busy:?}");
    assert!(busy.iter().all(|answer| answer.contains("busy")));
    assert_eq!(exit(&world.handle()).how, How::Code(0));
    // One that comes when all is over finds the folder unlocked.
    let late = Command::new(SHIM).arg("shim").arg(world.attempt()).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8(late.stdout).unwrap().contains("busy"));
    assert_eq!(world.text("lines"), "x\n");
}

#[test]
fn a_launch_that_meets_another_shim_waits_for_its_start() {
    let world = World::new();
    std::fs::create_dir_all(world.attempt()).unwrap();
    let launch = script(world.path(), "echo x >> $1/lines");
    std::fs::write(world.attempt().join("launch.json"), serde_json::to_vec(&launch).unwrap()).unwrap();
    // It waits for its secrets, with the folder locked.
    let mut command = Command::new(SHIM);
    let mut first =
        command.arg("shim").arg(world.attempt()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    eventually("the lock", || std::fs::File::open(world.attempt()).unwrap().try_lock().is_err());
    std::thread::scope(|scope| {
        let second = scope.spawn(|| world.launch(&launch));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!second.is_finished());
        drop(first.stdin.take());
        assert_eq!(exit(&second.join().unwrap()).how, How::Code(0));
    });
    assert_eq!(world.text("lines"), "x\n");
    // One that leaves without having started anything is replaced.
    let world = World::new();
    std::fs::create_dir_all(world.attempt()).unwrap();
    std::fs::write(world.attempt().join("launch.json"), serde_json::to_vec(&launch).unwrap()).unwrap();
    let lock = std::fs::File::open(world.attempt()).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| world.launch(&launch));
        std::thread::sleep(Duration::from_millis(50));
        drop(lock);
        assert_eq!(exit(&second.join().unwrap()).how, How::Code(0));
    });
    // Its entry is free already: whoever observes the end of a child takes it.
    assert!(first.wait().is_err());
}

#[test]
fn a_hundred_at_once_end_right() {
    let world = World::new();
    let one = |at: i32| {
        let dir = world.path().join(format!("many/{at}"));
        let launch = script(world.path(), &format!("echo {at}; echo {at} >&2; exit {}", at % 50));
        let handle = local::launch(shims(), &dir, &launch).unwrap();
        let exit = exit(&handle);
        assert_eq!((exit.how, exit.stdout.bytes), (How::Code(at % 50), format!("{at}\n").len() as u64));
        assert_eq!(std::fs::read_to_string(dir.join("stderr")).unwrap(), format!("{at}\n"));
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..100).map(|at| scope.spawn(move || one(at))).collect();
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

#[test]
fn a_server_of_shims_that_is_killed_is_replaced() {
    let (world, shims) = (World::new(), ForkServer::new(SHIM.into()));
    let launch = script(world.path(), "while [ ! -e $1/go ]; do sleep 0.01; done; echo $PPID");
    let first = local::launch(&shims, &world.path().join("many/1"), &launch).unwrap();
    let server = std::fs::read_to_string(format!("/proc/{}/stat", started_pid(&first, true))).unwrap();
    let server = pid_in(server.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap());
    assert!(Command::new("kill").args(["-KILL", &server.to_string()]).status().unwrap().success());
    let second = local::launch(&shims, &world.path().join("many/2"), &launch).unwrap();
    drop(shims);
    std::fs::write(world.path().join("go"), "").unwrap();
    for handle in [first, second] {
        assert_eq!(exit(&handle).how, How::Code(0));
        let parent = std::fs::read_to_string(handle.dir.join("stdout")).unwrap();
        assert_eq!(pid_in(&parent), started_pid(&handle, true));
    }
}

#[test]
fn what_was_written_goes_in_time() {
    let world = World::new();
    let attempts = world.path().join("many");
    let launch = script(world.path(), "while [ ! -e $1/go ]; do sleep 0.01; done");
    let over = local::launch(shims(), &attempts.join("1"), &script(world.path(), "exit")).unwrap();
    exit(&over);
    let alive = local::launch(shims(), &attempts.join("2"), &launch).unwrap();
    std::fs::write(attempts.join("site"), "here").unwrap();
    assert_eq!(local::remove_old(&attempts, Duration::from_secs(3_600)).unwrap(), 0);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(local::remove_old(&attempts, Duration::from_millis(1)).unwrap(), 1);
    assert!(!over.dir.exists() && alive.dir.exists() && attempts.join("site").exists());
    std::fs::write(world.path().join("go"), "").unwrap();
    assert_eq!(exit(&alive).how, How::Code(0));
}

#[test]
fn what_never_started_is_told() {
    let world = World::new();
    assert!(matches!(local::observe(&world.handle()).unwrap(), Observed::NotStarted));
    assert!(matches!(local::wait(&world.handle(), LONG).unwrap(), Observed::NotStarted));
    assert_eq!(local::observe(&world.handle()).unwrap().end(), None);
}

#[test]
fn a_wrong_shim_is_named() {
    for (shim, words) in [("/bin/no-such", "cannot be started"), ("/bin/true", "gave no answer")] {
        let world = World::new();
        let error = local::launch(&ForkServer::new(shim.into()), &world.attempt(), &script(world.path(), "exit 0"))
            .unwrap_err();
        assert!(error.to_string().contains(words) && error.to_string().contains(shim), "{error}");
        assert!(matches!(local::observe(&world.handle()).unwrap(), Observed::NotStarted));
    }
}

#[test]
fn a_handle_outlives_its_process_as_text() {
    let handle = World::new().handle();
    assert_eq!(serde_json::from_str::<Handle>(&serde_json::to_string(&handle).unwrap()).unwrap(), handle);
}
