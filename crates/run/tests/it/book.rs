//! A book in a world that forgets: random jobs, programs that outlive the engine, and an engine
//! that is killed between any two commits, before or after what it had decided was done.

use run::book::{About, Act, Book, Finished, Given, Ids, Kept, Moment, NewRun, Parent};
use run::repair::Request;
use run::settings::{Settings, Work};
use run::{Code, End, Input, Stop};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::jobs::{Change, Run, TaskRun};

const SEEDS: u64 = 400;
/// Commits of one world: far more than any needs.
const MOST_COMMITS: usize = 20_000;

struct Random(u64);

impl Random {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % many
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// Rows as a store keeps them.
#[derive(Default)]
struct Rows {
    runs: BTreeMap<i64, Run>,
    task_runs: BTreeMap<i64, TaskRun>,
    cores: BTreeMap<(i64, i64), String>,
    /// The last state that was noted, by task run.
    noted: BTreeMap<i64, String>,
}

impl Rows {
    fn write(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Run(run) => assert!(self.runs.insert(run.run_id, run).is_none(), "a run came to be twice"),
                Change::RunState(id, state, about) => {
                    let run = self.runs.get_mut(&id).expect("a state of no run");
                    run.state = state;
                    run.about = about.unwrap_or_else(|| run.about.clone());
                }
                Change::TaskRun(task) => self.task_run(task),
                Change::Core(run, position, core) => drop(self.cores.insert((run, position), core)),
                Change::Transition(_, task_run, life_cycle, _) => {
                    self.noted.extend(task_run.map(|id| (id, life_cycle)));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn task_run(&mut self, task: TaskRun) {
        if let Some(before) = self.task_runs.get(&task.task_run_id).filter(|before| before.end_ms.is_some()) {
            let told = |task: &TaskRun| (task.life_cycle.clone(), task.result.clone(), task.end_ms);
            assert_eq!(told(before), told(&task), "a task run that was over has changed");
        }
        self.task_runs.insert(task.task_run_id, task);
    }

    fn kept(&self, run_id: i64) -> Kept {
        let mut task_runs: Vec<TaskRun> =
            self.task_runs.values().filter(|task| task.run_id == run_id).cloned().collect();
        task_runs.sort_by_key(|task| (task.position, task.item, task.attempt));
        Kept {
            run: self.runs[&run_id].clone(),
            cores: self.cores.range((run_id, 0)..=(run_id, i64::MAX)).map(|(_, core)| core.clone()).collect(),
            task_runs,
        }
    }

    fn open(&self) -> Vec<i64> {
        self.runs.values().filter(|run| run.state.end_ms.is_none()).map(|run| run.run_id).collect()
    }
}

/// A program: where it belongs, and its end once it is over.
#[derive(Clone, Debug)]
struct Program {
    task: (i64, i64, Option<i64>),
    end: Option<End>,
    told: bool,
}

struct World {
    random: Random,
    rows: Rows,
    book: Book,
    ids: Ids,
    now_ms: i64,
    /// By run and epoch; outlives the engine.
    programs: BTreeMap<(i64, u64), Program>,
    /// Runs of run-job tasks, by task run and epoch.
    children: BTreeMap<(i64, u64), i64>,
    commits: usize,
    crashes: usize,
}

fn settings(random: &mut Random, child: bool) -> Value {
    let many = 1 + random.below(6);
    let mut tasks = Vec::new();
    for n in 0..many {
        let mut task = json!({ "task_key": format!("t{n}") });
        let on: Vec<Value> =
            (0..n).filter(|_| random.one_in(3)).map(|on| json!({ "task_key": format!("t{on}") })).collect();
        task["depends_on"] = on.into();
        let run_ifs = ["ALL_SUCCESS", "ALL_DONE", "AT_LEAST_ONE_FAILED", "NONE_FAILED"];
        task["run_if"] = run_ifs[random.below(4) as usize].into();
        task["max_retries"] = random.below(3).into();
        task["min_retry_interval_millis"] = (random.below(3) * 500).into();
        if random.one_in(4) {
            task["timeout_seconds"] = (1 + random.below(4)).into();
        }
        let python = json!({ "python_file": "/x.py", "parameters": ["{{job.run_id}}"] });
        match random.below(8) {
            0 => {
                task["condition_task"] = json!({ "left": "1", "op": "EQUAL_TO", "right": random.below(2).to_string() })
            }
            1 => {
                let inputs: Vec<u64> = (0..random.below(5)).collect();
                let python = json!({ "python_file": "/x.py", "parameters": ["{{input}}"] });
                let inner = json!({ "task_key": "i", "max_retries": 1, "spark_python_task": python });
                let concurrency = 1 + random.below(3);
                task["for_each_task"] =
                    json!({ "inputs": json!(inputs).to_string(), "concurrency": concurrency, "task": inner });
            }
            2 if child => task["run_job_task"] = json!({ "job_id": 1 }),
            _ => task["spark_python_task"] = python,
        }
        tasks.push(task);
    }
    let mut job = json!({ "tasks": tasks, "max_concurrent_runs": 1 + random.below(2), "queue": { "enabled": true } });
    if random.one_in(4) {
        job["timeout_seconds"] = (2 + random.below(20)).into();
    }
    job
}

impl World {
    fn new(seed: u64) -> Self {
        let ids = Ids::new(100, 1 << 40);
        Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            rows: Rows::default(),
            book: Book::default(),
            ids,
            now_ms: 1_795_990_000_000,
            programs: BTreeMap::new(),
            children: BTreeMap::new(),
            commits: 0,
            crashes: 0,
        }
    }

    fn start(&mut self, job_id: i64, json: Value, parent: Option<Parent>) -> i64 {
        let settings = Settings::read(&json).unwrap();
        let about = About { settings: json, parent, ..About::default() };
        let new = NewRun {
            job_id,
            number: 1,
            run_type: "JOB_RUN",
            name: "world".to_owned(),
            creator: "nobody".to_owned(),
            cause: "ONE_TIME",
            about,
            settings,
            queues: None,
        };
        self.book.start(new, &mut Moment { now_ms: self.now_ms, ids: &mut self.ids })
    }

    /// Writes what the book has decided and does it, or is killed in between.
    fn commit(&mut self) {
        self.commits += 1;
        assert!(self.commits < MOST_COMMITS, "the runs do not end");
        if self.random.one_in(12) {
            // Nothing of it is written.
            return self.crash();
        }
        let (changes, acts) = self.book.take();
        self.rows.write(changes);
        for act in acts {
            if self.random.one_in(25) {
                return self.crash();
            }
            self.act(act);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Launch { run_id, task_run_id, epoch, program } => {
                self.launch(run_id, task_run_id, epoch, &program.work)
            }
            Act::Stop { run_id, epoch } => {
                if let Some(program) = self.programs.get_mut(&(run_id, epoch)) {
                    program.end.get_or_insert(End::FAILED);
                }
            }
            Act::RunJob { parent, .. } => self.child(parent),
            Act::StopRun(run_id) => {
                self.book.stop(run_id, Stop::Engine, &mut Moment { now_ms: self.now_ms, ids: &mut self.ids });
                self.commit();
            }
            Act::Warn(_) | Act::Over { .. } | Act::Skipped { .. } => {}
        }
    }

    /// A start of an epoch that was started before starts nothing.
    fn launch(&mut self, run_id: i64, task_run_id: i64, epoch: u64, work: &Work) {
        let row = &self.rows.task_runs[&task_run_id];
        let wanted = row.item.unwrap_or(run_id).to_string();
        assert!(matches!(work, Work::Python { parameters, .. } if parameters[0] == wanted), "{work:?}: not {wanted}");
        assert_eq!(row.epoch, Some(epoch as i64), "a program starts that no row tells of");
        let task = (run_id, row.position, row.item);
        let others = self.programs.iter().filter(|(key, _)| **key != (run_id, epoch));
        let live = others.filter(|(_, program)| program.task == task && program.end.is_none()).count();
        assert_eq!(live, 0, "two programs of one task are alive");
        self.programs.entry((run_id, epoch)).or_insert(Program { task, end: None, told: false }).told = false;
    }

    fn child(&mut self, parent: Parent) {
        if !self.book.wants(parent) {
            let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
            self.book.finished(parent.run_id, parent.epoch, Finished::of(End::CANCELED), &mut at);
            return self.commit();
        }
        let key = (parent.task_run_id, parent.epoch);
        let known = self.children.get(&key).copied().filter(|child| self.rows.runs.contains_key(child));
        let child = match known {
            Some(child) => child,
            None => {
                let json = settings(&mut self.random, false);
                let child = self.start(1, json, Some(parent));
                self.children.insert(key, child);
                child
            }
        };
        self.book.child(parent, child);
        if !self.book.is_open(child) {
            let end = match self.rows.runs.get(&child).and_then(|run| run.state.result.as_deref()) {
                Some("SUCCESS" | "SUCCESS_WITH_FAILURES") => End::SUCCESS,
                _ => End::FAILED,
            };
            let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
            self.book.finished(parent.run_id, parent.epoch, Finished::of(end), &mut at);
        }
        self.commit();
    }

    /// The engine is gone; another one takes up what the rows tell of.
    fn crash(&mut self) {
        self.crashes += 1;
        self.book = Book::default();
        self.programs.values_mut().for_each(|program| program.told = false);
        for run_id in self.rows.open() {
            let kept = self.rows.kept(run_id);
            let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
            self.book.resume(kept, &mut at).unwrap();
        }
        self.commit();
    }

    /// Something happens outside: time goes by, a program starts, ends or is told of twice.
    fn happen(&mut self) {
        self.now_ms += self.random.below(800) as i64;
        let open: Vec<(i64, u64)> =
            self.programs.iter().filter(|(_, program)| !program.told).map(|(key, _)| *key).collect();
        let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
        self.book.tick(&mut at);
        if let Some(&(run_id, epoch)) = open.get(self.random.below(open.len().max(1) as u64) as usize) {
            let ends = [End::SUCCESS, End::SUCCESS, End::FAILED, End::internal_error(Code::InternalError)];
            let end = ends[self.random.below(4) as usize];
            let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
            self.book.input(run_id, Input::Started(epoch), &mut at);
            if self.random.one_in(2) {
                let program = self.programs.get_mut(&(run_id, epoch)).unwrap();
                let end = *program.end.get_or_insert(end);
                // Now and then what is told is told again.
                program.told = !self.random.one_in(6);
                let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
                self.book.finished(run_id, epoch, Finished::of(end), &mut at);
            }
        }
        self.commit();
    }

    fn play(&mut self) {
        let json = settings(&mut self.random, true);
        let many = 1 + self.random.below(3);
        for _ in 0..many {
            self.start(2, json.clone(), None);
            self.commit();
        }
        if self.random.one_in(5)
            && let Some(&run_id) = self.rows.open().first()
        {
            self.happen();
            self.book.stop(run_id, Stop::User, &mut Moment { now_ms: self.now_ms, ids: &mut self.ids });
            self.commit();
        }
        self.finish();
        self.repair();
        self.finish();
    }

    fn finish(&mut self) {
        while !self.rows.open().is_empty() {
            self.happen();
        }
    }

    fn repair(&mut self) {
        let failed = self.rows.runs.values().find(|run| run.state.result.as_deref() == Some("FAILED"));
        let Some(run_id) = failed.map(|run| run.run_id) else { return };
        let before: BTreeSet<i64> = self.rows.task_runs.keys().copied().collect();
        let request = Request { all_failed: true, dependents: true, ..Request::default() };
        let mut at = Moment { now_ms: self.now_ms, ids: &mut self.ids };
        let kept = self.rows.kept(run_id);
        self.book.repair(kept, None, &request, Given::default(), &mut at).unwrap();
        self.commit();
        if self.rows.runs[&run_id].state.end_ms.is_none() {
            assert!(self.rows.task_runs.keys().any(|id| !before.contains(id)), "a repair opened no task run");
        }
    }

    /// Every run and task run is over, and no program is left alone.
    fn judge(&self) {
        for task in self.rows.task_runs.values() {
            assert!(task.end_ms.is_some() && task.work.is_none(), "left hanging: {task:?}");
            assert!(task.start_ms <= task.end_ms, "{task:?}");
            assert_eq!(self.rows.noted.get(&task.task_run_id), Some(&task.life_cycle), "{task:?}");
        }
        for run in self.rows.runs.values() {
            let rounds: Vec<Value> = serde_json::from_str(&run.state.rounds).unwrap();
            assert!(rounds.iter().all(|round| round["end_ms"].is_i64()), "{rounds:?}");
        }
        let alone = self.programs.iter().find(|(_, program)| program.end.is_none());
        assert!(alone.is_none(), "nobody waits for {alone:?}");
    }
}

#[test]
fn every_run_ends_however_often_the_engine_is_killed() {
    let (mut crashes, mut commits) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.play();
            world.judge();
        }));
        assert!(played.is_ok(), "seed {seed}");
        crashes += world.crashes;
        commits += world.commits;
    }
    println!("{SEEDS} worlds, {commits} commits, {crashes} crashes");
    assert!(crashes > SEEDS as usize);
}
