//! Ends of engine and shim in the middle of their work.

use super::*;
use std::fs;

/// Names the folder of the test to an engine that is to be killed.
const FOLDER: &str = "RUN_TEST_ENGINE_FOLDER";
/// Tasks of the crash loop.
const TASKS: u64 = 20;

/// This test program as an engine that runs one of the ignored tests.
fn engine(test: &str, folder: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("local::crash::{test}"), "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[test]
#[ignore = "run by the test that kills it"]
fn launches_and_waits() {
    let Some(folder) = folder() else { return };
    let text = "echo begin; echo > $1/ready; while [ ! -e $1/go ]; do sleep 0.01; done; echo end; echo end >&2; exit 7";
    let handle = local::launch(shims(), &folder.join("attempts/17-1"), &script(&folder, text)).unwrap();
    local::wait(&handle, LONG).unwrap();
}

#[test]
fn a_task_outlives_its_engine_and_is_adopted() {
    let world = World::new();
    let mut first = engine("launches_and_waits", world.path());
    eventually("the task", || world.text("ready").ends_with('\n'));
    first.kill().unwrap();
    first.wait().unwrap();
    let process = alive(&world.handle());
    assert_eq!(process.task_pid(), started_pid(&world.handle(), false));
    assert!(process.started_ms() > 1_700_000_000_000);
    assert!(!process.wait(Duration::from_millis(50)).unwrap());
    fs::write(world.path().join("go"), "").unwrap();
    let begun = Instant::now();
    assert!(process.wait(LONG).unwrap());
    println!("the end was seen after {:?}", begun.elapsed());
    assert_eq!(exit(&world.handle()).how, How::Code(7));
    assert_eq!((world.output("stdout"), world.output("stderr")), ("begin\nend\n".into(), "end\n".into()));
}

#[test]
fn a_lost_supervisor_is_noticed_and_its_task_is_gone() {
    let world = World::new();
    let handle = world.launch_script(
        "trap '' TERM HUP
         sh -c 'trap \"\" HUP; echo $$ > $0/child; sleep 300' $1 & setsid sh -c 'echo $$ > $0/far; exec sleep 300' $1 &
         while [ ! -s $1/child ] || [ ! -s $1/far ]; do sleep 0.01; done; echo > $1/ready; sleep 300",
    );
    eventually("the task", || world.text("ready").ends_with('\n'));
    let waiting = std::thread::spawn({
        let handle = handle.clone();
        move || local::wait(&handle, LONG).unwrap()
    });
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    kill(started_pid(&handle, true));
    let observed = waiting.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    println!("the loss was seen after {:?}", begun.elapsed());
    let end = observed.end().unwrap();
    assert_eq!((end.life_cycle, end.code), (LifeCycle::InternalError, Code::InternalError));
    let Observed::Lost { why } = observed else { panic!("{observed:?}") };
    assert!(why.contains("supervisor lost") && why.contains("17-1") && why.contains("run the task again"), "{why}");
    eventually("the end of the task", || !is_alive(started_pid(&handle, false)));
    assert!(local::sweep(&handle).unwrap() >= 2);
    assert!(!is_alive(pid_in(&world.text("child"))) && !is_alive(pid_in(&world.text("far"))));
    assert!(matches!(local::launch(shims(), &handle.dir, &script(world.path(), "exit")), Ok(again) if again == handle));
    assert!(matches!(local::observe(&handle).unwrap(), Observed::Lost { .. }));
}

/// Changes a field of `started.json` and gives what is observed then.
fn observed_after(handle: &Handle, change: impl FnOnce(&mut serde_json::Value)) -> Observed {
    let path = handle.dir.join("started.json");
    let before = fs::read(&path).unwrap();
    let mut started = serde_json::from_slice(&before).unwrap();
    change(&mut started);
    fs::write(&path, serde_json::to_vec(&started).unwrap()).unwrap();
    let observed = local::observe(handle).unwrap();
    fs::write(&path, before).unwrap();
    observed
}

#[test]
fn a_process_with_the_number_of_another_is_not_adopted() {
    let world = World::new();
    let handle = world.launch_script("sleep 300");
    let observed = observed_after(&handle, |started| {
        let ticks = started["shim"]["start_ticks"].as_u64().unwrap();
        started["shim"]["start_ticks"] = (ticks - 1).into();
    });
    assert!(matches!(observed, Observed::Lost { .. }), "{observed:?}");
    let observed = observed_after(&handle, |started| started["shim"]["pid"] = i32::MAX.into());
    assert!(matches!(observed, Observed::Lost { .. }), "{observed:?}");
    alive(&handle);
}

#[test]
fn a_restart_of_the_machine_or_container_is_told() {
    let world = World::new();
    let handle = world.launch_script("sleep 300");
    let observed = observed_after(&handle, |started| started["boot_id"] = "of the day before".into());
    assert!(matches!(observed, Observed::OtherBoot), "{observed:?}");
    let observed = observed_after(&handle, |started| started["pid_namespace"] = 1.into());
    assert!(matches!(observed, Observed::OtherBoot), "{observed:?}");
    assert_eq!(observed.end().unwrap().code, Code::InternalError);
    // A result counts, whenever it was written.
    local::stop(&handle, Duration::ZERO).unwrap();
    let observed = observed_after(&handle, |started| started["boot_id"] = "of the day before".into());
    assert!(matches!(observed, Observed::Exited(_)), "{observed:?}");
}

#[test]
fn a_damaged_record_is_an_error_that_names_it() {
    let world = World::new();
    let handle = world.launch_script("exit 0");
    exit(&handle);
    fs::write(handle.dir.join("exit.json"), "{").unwrap();
    let error = local::observe(&handle).unwrap_err().to_string();
    assert!(error.contains("17-1/exit.json") && error.contains("check the disk"), "{error}");
}

fn handle_of(folder: &Path, task: u64) -> Handle {
    Handle { dir: folder.join(format!("loop/{task}")), epoch: task + 1 }
}

fn code_of(task: u64) -> i32 {
    i32::try_from(task % 3).unwrap()
}

#[test]
#[ignore = "run by the test that kills it"]
fn sees_all_tasks_through() {
    let Some(folder) = folder() else { return };
    // Backwards, so that those of the last life are met before new ones are launched.
    for task in (0..TASKS).rev() {
        let handle = handle_of(&folder, task);
        if matches!(local::observe(&handle).unwrap(), Observed::NotStarted) {
            let text = format!("echo {task} $$ >> $1/lines; echo out {task}; sleep 0.03; exit {}", code_of(task));
            let launch = Launch { epoch: handle.epoch, ..script(&folder, &text) };
            local::launch(shims(), &handle.dir, &launch).unwrap();
        }
    }
    for task in 0..TASKS {
        exit(&handle_of(&folder, task));
    }
    fs::write(folder.join("done"), "").unwrap();
}

/// Kills the engine at random until it gets through; gives the number of kills.
fn kill_until_done(folder: &Path, seed: u64) -> usize {
    let mut random = seed;
    for kills in 0.. {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut engine = engine("sees_all_tasks_through", folder);
        // Most ends come early in its life, and each life may be longer than the last.
        std::thread::sleep(Duration::from_micros(random % (20_000 + 5_000 * kills as u64)));
        engine.kill().unwrap();
        let status = engine.wait().unwrap();
        // It ends by a signal or in peace, never by a failure of its own.
        assert_ne!(status.code().unwrap_or(0), 101, "seed {seed}");
        if folder.join("done").exists() {
            return kills;
        }
    }
    unreachable!()
}

#[test]
fn every_task_runs_once_however_often_the_engine_is_killed() {
    let mut all = 0;
    for seed in [1, 0x5eed_0001, 0x5eed_0002, 0x5eed_0003] {
        let world = World::new();
        all += kill_until_done(world.path(), seed);
        let mut lines: Vec<u64> =
            world.text("lines").lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..TASKS).collect::<Vec<_>>(), "seed {seed}");
        for task in 0..TASKS {
            let handle = handle_of(world.path(), task);
            let exit = exit(&handle);
            assert_eq!((exit.how, exit.stopped), (How::Code(code_of(task)), false), "seed {seed}, task {task}");
            assert_eq!(fs::read_to_string(handle.dir.join("stdout")).unwrap(), format!("out {task}\n"));
        }
    }
    println!("{all} kills");
}
