//! What a task writes, and how it is read.

use super::*;
use run::local::logs::{self, Chunk, Stream};
use std::fs;

/// A stream from the beginning to the end, in pieces of an odd size.
fn pieces(dir: &Path, stream: Stream) -> Vec<Chunk> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    loop {
        let chunk = logs::read(dir, stream, at, 99_991).unwrap();
        if chunk.bytes.is_empty() {
            assert_eq!(chunk.next, at);
            return pieces;
        }
        at = chunk.next;
        pieces.push(chunk);
    }
}

fn whole(dir: &Path, stream: Stream) -> Vec<u8> {
    pieces(dir, stream).into_iter().flat_map(|chunk| chunk.bytes).collect()
}

fn on_disk(dir: &Path, stream: &str) -> u64 {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    files.filter(|f| f.file_name().to_string_lossy().starts_with(stream)).map(|f| f.metadata().unwrap().len()).sum()
}

#[test]
fn both_streams_are_kept_apart() {
    let world = World::new();
    let exit = world.run("printf out; printf error >&2; printf ' more'");
    assert_eq!(whole(&world.attempt(), Stream::Stdout), b"out more");
    assert_eq!(whole(&world.attempt(), Stream::Stderr), b"error");
    assert_eq!((exit.stdout.bytes, exit.stderr.bytes), (8, 5));
}

#[test]
fn output_is_there_while_the_task_runs() {
    let world = World::new();
    let handle = world.launch_script("echo one; while [ ! -e $1/go ]; do sleep 0.01; done; echo two");
    let read = |at| logs::read(&world.attempt(), Stream::Stdout, at, 100).unwrap();
    eventually("the first line", || read(0).bytes == b"one\n");
    assert_eq!(read(4), Chunk { left_out_bytes: 0, bytes: Vec::new(), next: 4 });
    fs::write(world.path().join("go"), "").unwrap();
    exit(&handle);
    assert_eq!(read(4).bytes, b"two\n");
    assert_eq!(read(1_000), Chunk { left_out_bytes: 0, bytes: Vec::new(), next: 8 });
}

#[test]
fn files_are_rotated_and_read_as_one() {
    let world = World::new();
    let mut launch = script(world.path(), "seq 1 400000");
    launch.limits.rotate_bytes = 300_000;
    let exit = exit(&world.launch(&launch));
    let expected: String = (1..=400_000).map(|n| format!("{n}\n")).collect();
    assert!(whole(&world.attempt(), Stream::Stdout) == expected.as_bytes());
    assert_eq!((exit.stdout.bytes, exit.stdout.left_out_bytes), (expected.len() as u64, 0));
    let second = fs::metadata(world.attempt().join("stdout.00000000000001048576")).unwrap();
    assert_eq!(second.len(), 300_000);
}

#[test]
fn of_200_mb_the_head_and_the_tail_are_kept() {
    let world = World::new();
    let mut launch = script(world.path(), "echo HEAD; head -c 200000000 /dev/zero; echo TAIL");
    launch.limits = Limits { rotate_bytes: 4 << 20, total_bytes: 16 << 20, ..launch.limits };
    let begun = Instant::now();
    let exit = exit(&world.launch(&launch));
    println!("200 MB took {:?}, {:?}", begun.elapsed(), exit.usage);
    assert_eq!((exit.how, exit.stdout.bytes, exit.log_error), (How::Code(0), 200_000_010, None));
    let kept = on_disk(&world.attempt(), "stdout");
    assert!((8 << 20..(16 << 20) + 1_000).contains(&kept), "{kept}");
    let pieces = pieces(&world.attempt(), Stream::Stdout);
    let read: u64 = pieces.iter().map(|chunk| chunk.bytes.len() as u64 + chunk.left_out_bytes).sum();
    assert_eq!(read, exit.stdout.bytes);
    let gaps: Vec<&Chunk> = pieces.iter().filter(|chunk| chunk.left_out_bytes > 0).collect();
    assert_eq!(gaps.iter().map(|chunk| chunk.left_out_bytes).collect::<Vec<_>>(), [exit.stdout.left_out_bytes]);
    let first_mib: usize = pieces.iter().take_while(|chunk| chunk.left_out_bytes == 0).map(|c| c.bytes.len()).sum();
    assert_eq!(first_mib, 1 << 20);
    assert!(pieces[0].bytes.starts_with(b"HEAD\n") && pieces.last().unwrap().bytes.ends_with(b"TAIL\n"));
    // What people see who have no more than a shell.
    let marker = gaps[0].marker().unwrap();
    let shell = Command::new("sh").args(["-c", "cat stdout stdout.*"]).current_dir(world.attempt()).output().unwrap();
    assert_eq!(&shell.stdout[1 << 20..(1 << 20) + marker.len()], marker.as_bytes());
    assert!(shell.stdout.ends_with(b"TAIL\n") && marker.contains(&exit.stdout.left_out_bytes.to_string()));
}

fn with_secrets(world: &World, text: &str, values: &[(Option<&str>, &str)]) -> Launch {
    let secret = |&(env, value): &(Option<&str>, &str)| Secret { env: env.map(str::to_owned), value: value.to_owned() };
    Launch { secrets: values.iter().map(secret).collect(), ..script(world.path(), text) }
}

#[test]
fn secrets_do_not_reach_the_disk() {
    let world = World::new();
    let text = r#"
        echo "plain $TOKEN."; echo "$TOKEN" >&2
        printf hun; sleep 0.05; printf ter; sleep 0.05; echo 2-and-more
        printf %s "$TOKEN" | base64; printf 'user:%s' "$TOKEN" | base64
        echo hunter2%2Dand%2dmore hunter2-and-mor; printf hunter2-a"#;
    let launch = with_secrets(&world, text, &[(Some("TOKEN"), "hunter2-and-more"), (None, "known")]);
    let exit = exit(&world.launch(&launch));
    assert_eq!(exit.how, How::Code(0));
    assert_eq!(world.output("stderr"), "[REDACTED]\n");
    let out = world.output("stdout");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], ["plain [REDACTED].", "[REDACTED]", "[REDACTED]"]);
    assert!(lines[3].starts_with("dXNlcj") && lines[3].contains("[REDACTED]") && lines[3].len() < 24, "{out}");
    assert_eq!(lines[4..], ["hunter2%2Dand%2dmore hunter2-and-mor", "[REDACTED]"]);
    for entry in fs::read_dir(world.attempt()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(16).any(|window| window == b"hunter2-and-more"));
    }
}

#[test]
fn secrets_are_cut_out_at_the_bounds_of_files_and_reads() {
    let world = World::new();
    let mut launch = with_secrets(
        &world,
        r#"i=0; while [ $i -lt 60 ]; do printf "%s-" $V $V $V $V $V $V $V $V $V $V; i=$((i+1)); done | cat | dd bs=7 2>/dev/null"#,
        &[(Some("V"), "sesame-street")],
    );
    launch.limits = Limits { rotate_bytes: 4_096, total_bytes: 1 << 24, ..launch.limits };
    exit(&world.launch(&launch));
    assert_eq!(String::from_utf8(whole(&world.attempt(), Stream::Stdout)).unwrap(), "[REDACTED]-".repeat(600));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let world = World::new();
    let launch = with_secrets(&world, "echo hunter2", &[(None, "hunter2")]);
    let error = local::launch(shims(), &world.attempt(), &launch).unwrap_err();
    assert!(error.to_string().contains("argument 2 of `/bin/sh` holds a secret"), "{error}");
    let mut launch = with_secrets(&world, "exit", &[(None, "hunter2")]);
    launch.environment.insert("TOKEN".into(), "hunter2".into());
    let error = local::launch(shims(), &world.attempt(), &launch).unwrap_err();
    assert!(error.to_string().contains("variable `TOKEN` holds a secret"), "{error}");
    let launch = Launch { folder: "here".into(), ..launch };
    let error = local::launch(shims(), &world.attempt(), &launch).unwrap_err();
    assert!(error.to_string().contains("working folder `here` is relative"), "{error}");
    assert!(!world.attempt().exists() && !format!("{launch:?}").contains("value"));
}

#[test]
fn many_secrets_are_handed_over() {
    let world = World::new();
    let values: Vec<String> = (0..300).map(|n| format!("{n:05}{}", "s".repeat(1_000))).collect();
    let secrets: Vec<(Option<&str>, &str)> = values.iter().map(|value| (None, value.as_str())).collect();
    let handle = world.launch(&with_secrets(&world, r#"printf '00299%01000d' 0 | tr 0 s; echo"#, &secrets));
    assert_eq!(exit(&handle).how, How::Code(0));
}
