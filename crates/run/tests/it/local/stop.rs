//! Stopping, and what tasks leave behind.

use super::*;

fn ready(world: &World) {
    eventually("the task", || world.text("ready").ends_with('\n'));
}

#[test]
fn a_task_may_end_in_its_own_way() {
    let world = World::new();
    let handle = world.launch_script("trap 'echo bye; exit 3' TERM; echo > $1/ready; while :; do sleep 0.01; done");
    ready(&world);
    let Observed::Exited(exit) = local::stop(&handle, LONG).unwrap() else { panic!() };
    assert_eq!((exit.how, exit.stopped), (How::Code(3), true));
    assert_eq!(world.output("stdout"), "bye\n");
}

#[test]
fn a_task_that_does_not_listen_is_killed_with_all_that_it_started() {
    let world = World::new();
    let handle = world.launch_script(
        "trap '' TERM
         sh -c 'echo $$ > $0/child; sleep 300' $1 &
         setsid sh -c 'echo $$ > $0/far; exec sleep 300' $1 &
         while [ ! -s $1/child ] || [ ! -s $1/far ]; do sleep 0.01; done
         echo > $1/ready; while :; do sleep 0.01; done",
    );
    ready(&world);
    let begun = Instant::now();
    let Observed::Exited(exit) = local::stop(&handle, Duration::from_millis(400)).unwrap() else { panic!() };
    assert!((400..5_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert_eq!((exit.how, exit.stopped, exit.left_running), (How::Signal(9), true, false));
    assert!(!is_alive(pid_in(&world.text("child"))) && !is_alive(pid_in(&world.text("far"))));
    assert!(!is_alive(started_pid(&handle, false)));
}

#[test]
fn what_the_program_had_started_gets_the_grace_time_too() {
    let world = World::new();
    let handle = world.launch_script(
        r#"sh -c 'trap "sleep 0.3; echo tidied up; exit" TERM; echo > $0/ready; while :; do sleep 0.01; done' $1; :"#,
    );
    ready(&world);
    let Observed::Exited(exit) = local::stop(&handle, LONG).unwrap() else { panic!() };
    assert_eq!((exit.how, exit.stopped), (How::Signal(15), true));
    assert_eq!(world.output("stdout"), "tidied up\n");
}

#[test]
fn a_request_is_carried_out_without_an_engine() {
    let world = World::new();
    let mut launch = script(world.path(), "trap '' TERM; echo > $1/ready; while :; do sleep 0.01; done");
    launch.limits.grace_ms = 200;
    let handle = world.launch(&launch);
    ready(&world);
    // As somebody would with no more than a shell.
    std::fs::write(world.attempt().join("control"), "stop\n").unwrap();
    assert_eq!(exit(&handle).how, How::Signal(9));
}

#[test]
fn a_later_request_may_be_shorter() {
    let world = World::new();
    let handle = world.launch_script("trap '' TERM; echo > $1/ready; while :; do sleep 0.01; done");
    ready(&world);
    local::request_stop(&handle, LONG).unwrap();
    assert!(!alive(&handle).wait(Duration::from_millis(300)).unwrap());
    let Observed::Exited(exit) = local::stop(&handle, Duration::ZERO).unwrap() else { panic!() };
    assert_eq!(exit.how, How::Signal(9));
}

#[test]
fn a_task_that_is_halted_is_stopped() {
    let world = World::new();
    let handle = world.launch_script("echo > $1/ready; kill -STOP $$");
    ready(&world);
    let Observed::Exited(exit) = local::stop(&handle, LONG).unwrap() else { panic!() };
    assert_eq!(exit.how, How::Signal(15));
}

#[test]
fn a_shim_that_does_not_answer_is_killed_with_its_task() {
    let world = World::new();
    let handle = world.launch_script("echo > $1/ready; sleep 300");
    ready(&world);
    let shim = started_pid(&handle, true);
    assert!(Command::new("/bin/kill").args(["-STOP", &shim.to_string()]).status().unwrap().success());
    let observed = local::stop(&handle, Duration::ZERO).unwrap();
    assert!(matches!(observed, Observed::Lost { .. }), "{observed:?}");
    assert!(!is_alive(started_pid(&handle, false)));
}

#[test]
fn stopping_what_is_over_changes_nothing() {
    let world = World::new();
    let before = world.run("exit 4");
    local::request_stop(&world.handle(), LONG).unwrap();
    let Observed::Exited(exit) = local::stop(&world.handle(), LONG).unwrap() else { panic!() };
    assert_eq!(exit, before);
}

#[test]
fn what_was_stopped_before_its_start_does_not_start() {
    let world = World::new();
    std::fs::create_dir_all(world.attempt()).unwrap();
    assert!(matches!(local::stop(&world.handle(), LONG).unwrap(), Observed::NotStarted));
    let launch = script(world.path(), "echo x > $1/ran");
    let error = local::launch(shims(), &world.attempt(), &launch).unwrap_err();
    assert!(error.to_string().contains("was stopped before it started"), "{error}");
    assert_eq!(world.text("ran"), "");
    // Without a folder there is nothing that could start.
    let nowhere = Handle { dir: world.path().join("nowhere"), epoch: 1 };
    assert!(matches!(local::stop(&nowhere, LONG).unwrap(), Observed::NotStarted));
}

#[test]
fn a_daemon_that_holds_the_pipe_does_not_hold_the_attempt() {
    let world = World::new();
    let mut launch = script(
        world.path(),
        "setsid sh -c 'echo $$ > $0/far; exec sleep 300' $1 &
         while [ ! -s $1/far ]; do sleep 0.01; done; echo done",
    );
    launch.limits.drain_ms = 200;
    let begun = Instant::now();
    let exit = exit(&world.launch(&launch));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!((exit.how, exit.left_running), (How::Code(0), true));
    assert_eq!(world.output("stdout"), "done\n");
    let far = pid_in(&world.text("far"));
    assert!(is_alive(far));
    assert_eq!(local::sweep(&world.handle()).unwrap(), 1);
    assert!(!is_alive(far));
}

#[test]
fn what_stays_in_the_group_ends_with_the_program() {
    let world = World::new();
    let mut launch = script(world.path(), "sh -c 'sleep 0.1; echo late; echo $$ > $0/child; sleep 300' $1 & exit 5");
    launch.limits.drain_ms = 800;
    let exit = exit(&world.launch(&launch));
    assert_eq!((exit.how, exit.left_running), (How::Code(5), false));
    assert_eq!(world.output("stdout"), "late\n");
    assert!(!is_alive(pid_in(&world.text("child"))));
}
