//! Disks that refuse. The faults are mounts in a namespace of the shims' own, which `unshare` makes
//! where it may; where it may not, these tests say so and pass.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A server of shims that first runs some commands with `$1` as attempt folder, in mounts of its own.
/// By `$2` something can be brought out.
fn shims_behind(world: &World, before: &str) -> Option<ForkServer> {
    if !Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: no mounts of one's own here");
        return None;
    }
    let path = world.path().join("shim.sh");
    let text = format!(
        "#!/bin/sh\nexport PATH=/usr/bin:/bin:/usr/sbin:/sbin\nexec unshare -rm sh -c '\n{before}\nexec \"$0\" shim' {SHIM} {} {}\n",
        world.attempt().display(),
        world.path().display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Some(ForkServer::new(path))
}

const READ_ONLY: &str = "mount --bind $1 $1 && mount -o remount,ro,bind $1 || exit";

fn tmpfs(size: &str) -> String {
    format!(
        "cp $1/launch.json $2/kept.json && mount -t tmpfs -o size={size} none $1 && cp $2/kept.json $1/launch.json || exit"
    )
}

fn check_refused(before: &str, kind: std::io::ErrorKind, words: &[&str]) {
    let world = World::new();
    let Some(shims) = shims_behind(&world, before) else { return };
    let launch = script(world.path(), "echo x > $1/ran");
    let error = local::launch(&shims, &world.attempt(), &launch).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let message = error.to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(matches!(local::observe(&world.handle()).unwrap(), Observed::NotStarted));
    assert_eq!(world.text("ran"), "");
}

#[test]
fn in_a_read_only_folder_nothing_runs() {
    let words = ["17-1/exit.json` cannot be written", "Read-only file system", "make the folder writable"];
    check_refused(READ_ONLY, std::io::ErrorKind::ReadOnlyFilesystem, &words);
}

#[test]
fn on_a_full_disk_nothing_runs() {
    let words = ["17-1/exit.json` cannot be written", "No space left", "free space there"];
    check_refused(&tmpfs("8k"), std::io::ErrorKind::StorageFull, &words);
}

#[test]
fn a_result_is_kept_when_the_disk_runs_full_meanwhile() {
    let world = World::new();
    let bring = "(while [ ! -e $1/exit.json ]; do sleep 0.01; done; cp $1/stdout $2 && cp $1/exit.json $2) &";
    let Some(shims) = shims_behind(&world, &format!("{}\n{bring}", tmpfs("64k"))) else { return };
    let launch = script(world.path(), "head -c 500000 /dev/zero; exit 7");
    local::launch(&shims, &world.attempt(), &launch).unwrap();
    // Copied last.
    eventually("the result", || world.text("exit.json").ends_with('}'));
    let exit: Exit = serde_json::from_str(&world.text("exit.json")).unwrap();
    assert_eq!((exit.how, exit.stdout.bytes), (How::Code(7), 500_000));
    let error = exit.log_error.unwrap();
    assert!(error.contains("17-1/stdout` is missing") && error.contains("No space left"), "{error}");
    let kept = fs::metadata(world.path().join("stdout")).unwrap().len();
    assert_eq!(exit.stdout.left_out_bytes, 500_000 - kept);
    assert!(kept > 8_000, "{kept}");
}

#[test]
fn an_attempt_folder_that_cannot_be_made_is_named() {
    let world = World::new();
    fs::write(world.path().join("attempts"), "a file").unwrap();
    let error = local::launch(shims(), &world.attempt(), &script(world.path(), "exit")).unwrap_err().to_string();
    assert!(error.contains("attempts/17-1` cannot be made") && error.contains("then start the task again"), "{error}");
}
