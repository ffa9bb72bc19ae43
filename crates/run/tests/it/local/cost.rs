//! What a task costs; printed, not checked.

use super::*;

/// CPU time of this process and of all that it has waited for, ms.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<u64> =
        stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(4).map(|f| f.parse().unwrap()).collect();
    // Clock ticks are 10 ms.
    fields.iter().sum::<u64>() as f64 * 10.0
}

#[test]
#[ignore = "prints figures"]
fn what_a_task_costs() {
    for (what, program) in [("the program alone", None), ("a task", Some(shims()))] {
        let world = World::new();
        let (cpu, begun) = (cpu_ms(), Instant::now());
        for at in 0..100 {
            match program {
                None => assert!(Command::new("/bin/true").status().unwrap().success()),
                Some(shims) => {
                    let dir = world.path().join(format!("attempts/{at}"));
                    let launch = Launch { program: "/bin/true".into(), ..script(world.path(), "") };
                    assert_eq!(exit(&local::launch(shims, &dir, &launch).unwrap()).how, How::Code(0));
                }
            }
        }
        let (cpu, wall) = ((cpu_ms() - cpu) / 100.0, begun.elapsed().as_secs_f64() * 10.0);
        println!("{what}: {cpu:.2} ms of CPU, {wall:.2} ms of wall time");
    }
}
