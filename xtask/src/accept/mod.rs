//! Acceptance lines: each runs on real input, prints its figures and ends with
//! `N passed, N failed`.

mod browser;
mod cases;
mod clients;
mod codecs;
mod corpus;
mod faults;
mod guide;
mod jobs_api;
mod kill_jobs;
mod lab;
mod load;
mod mcp;
mod model;
mod python;
mod random;
mod rest;
mod run_states;
mod shop;
mod simulate;
mod speed;
mod speed_jobs;
mod stores;
mod tasks;

use anyhow::{Result, bail};

/// What a line found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Counts a check; a failed one is printed with its reason.
    pub fn check(&mut self, ok: bool, what: impl std::fmt::Display) {
        if ok {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED {what}");
        }
    }

    /// Prints a figure beside its goal and counts whether it is met. What the test command runs has
    /// goals for ratios and bytes only: a slower machine alone fails none.
    pub fn goal(&mut self, what: &str, figure: f64, goal: Goal) {
        let (met, said) = match goal {
            Goal::AtLeast(least) => (figure >= least, format!("at least {least}")),
            Goal::AtMost(most) => (figure <= most, format!("at most {most}")),
        };
        println!("{what}: {figure:.2}, goal {said}");
        self.check(met, format!("{what}: {figure:.2} is not {said}"));
    }

    /// Counts something that cannot be run here, by name.
    pub fn skip(&mut self, what: impl std::fmt::Display) {
        self.skipped += 1;
        println!("skipped {what}");
    }
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// One acceptance line.
pub struct Line {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<Outcome>,
    when: When,
}

/// Whether the test command runs it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    OnRequest,
}

const LINES: &[Line] = &[
    Line {
        name: "diagnose-corpus",
        about: "labelled, public and Spark's own logs: findings, counts, numbers",
        run: corpus::run,
        when: When::Always,
    },
    Line {
        name: "diagnose-cases",
        about: "pasted plans, traces and stage numbers with their right answer",
        run: cases::run,
        when: When::Always,
    },
    Line {
        name: "codecs",
        about: "one log in every codec and form gives the same JSON",
        run: codecs::run,
        when: When::Always,
    },
    Line {
        name: "model",
        about: "the model of the run: its error, exact sums, names that do not matter",
        run: model::run,
        when: When::Always,
    },
    Line {
        name: "guide",
        about: "the first screens in docs/guide are what the binary prints",
        run: guide::run,
        when: When::Always,
    },
    Line {
        name: "stores",
        about: "real S3, Azure and Google servers give what the files give; failures are told",
        run: stores::run,
        when: When::Always,
    },
    Line {
        name: "rest",
        about: "Spark's REST answers and errors, asked of lakescope serve over HTTP",
        run: rest::run,
        when: When::Always,
    },
    Line {
        name: "faults-history",
        about: "killed, disk full, logs replaced, many, slow and hostile clients, bombs [case ...] [long]",
        run: faults::run,
        when: When::Always,
    },
    Line {
        name: "mcp-peer",
        about: "the MCP server that Spark's users run, on our REST; the official SDK on our tools",
        run: mcp::run,
        when: When::Always,
    },
    Line {
        name: "browser-history",
        about: "the pages in a real browser [folder for screenshots]",
        run: browser::run,
        when: When::Always,
    },
    Line {
        name: "run-states",
        about: "the decision table of run states, each case a job that really runs [case ...]",
        run: run_states::run,
        when: When::Always,
    },
    Line {
        name: "tasks",
        about: "programs of every kind with their packages: scripts, wheels, notebooks, Spark [case ...]",
        run: tasks::run,
        when: When::Always,
    },
    Line {
        name: "kill-jobs",
        about: "servers that are killed again and again while tasks run [sqlite | postgres] [kills]",
        run: kill_jobs::run,
        when: When::Always,
    },
    Line {
        name: "clients-jobs",
        about: "the official SDK, our command line, the archived one and Airflow against the Jobs API [sdk] [current] [legacy] [airflow]",
        run: clients::run,
        when: When::Always,
    },
    Line {
        name: "simulate",
        about: "runs in random worlds: 100,000 seeds, a restart after every step [seeds]",
        run: simulate::run,
        when: When::Always,
    },
    Line {
        name: "fuzz",
        about: "every parser, one minute each [seconds [target ...]]",
        run: crate::fuzz::accept,
        when: When::Always,
    },
    Line {
        name: "speed-eventlog",
        about: "the 1.09 GB log beside Spark's History Server and a plain parse",
        run: speed::run,
        when: When::OnRequest,
    },
    Line {
        name: "load-history",
        about: "2,000 applications, a stage of 200,000 tasks, requests beside Spark's History Server [part ...]",
        run: load::run,
        when: When::OnRequest,
    },
    Line {
        name: "shop",
        about: "the job to practise on, from nothing to repaired, on real Spark",
        run: shop::run,
        when: When::OnRequest,
    },
    Line {
        name: "speed-jobs",
        about: "tasks a second, idling, lists over 1,000,000 runs, beside Airflow, Prefect and Dagster [part ...]",
        run: speed_jobs::run,
        when: When::OnRequest,
    },
    Line {
        name: "lab",
        about: "bad and repaired variants on real Spark [scale]",
        run: lab::run,
        when: When::OnRequest,
    },
];

/// Prints the names.
pub fn list() {
    for line in LINES {
        println!("{:18} {}", line.name, line.about);
    }
}

/// The lines that the test command runs.
pub fn fast() -> impl Iterator<Item = &'static Line> {
    LINES.iter().filter(|l| l.when == When::Always)
}

/// Runs a line by name; an error when it failed.
pub fn run(name: &str, arguments: &[String]) -> Result<()> {
    let Some(line) = LINES.iter().find(|l| l.name == name) else {
        list();
        bail!("there is no acceptance line {name:?}");
    };
    let outcome = run_one(line, arguments)?;
    match outcome.failed {
        0 => Ok(()),
        n => bail!("{n} failed"),
    }
}

/// Runs a line and prints its closing line.
pub fn run_one(line: &Line, arguments: &[String]) -> Result<Outcome> {
    println!("== accept {}: {}", line.name, line.about);
    let begun = std::time::Instant::now();
    let outcome = (line.run)(arguments)?;
    let Outcome { passed, failed, skipped } = outcome;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}, {seconds:.0} s: {passed} passed, {failed} failed, {skipped} skipped", line.name);
    Ok(outcome)
}
