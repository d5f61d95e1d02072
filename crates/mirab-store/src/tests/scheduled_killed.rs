//! A durable host that is killed at any moment: what it said was accepted is run to its end, and runs twice only where it was running.
use super::Home;
use crate::{Blob, Entry, Loaded, TaskJournal};
use mirab_core::{ResourceConfig, Time};
use mirab_flow::scheduler::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Set for the child, which is this test once more: the file of the scheduler.
const CHILD: &str = "MIRAB_TEST_SCHEDULER_TO_RUN";
/// Tasks that a child accepts in a step.
const BATCH: u64 = 20;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time(u64::try_from(since.as_nanos()).unwrap())
}

fn restored(loaded: Loaded) -> TaskMachine {
    let resources = vec![ResourceConfig::token_bucket("api", 1e6, 1_000).unwrap()];
    let limits = Limits { resources, pools: vec![PoolSpec::new("p", 50)] };
    let options = MachineOptions { durable: true, retained: usize::MAX, ..MachineOptions::default() };
    TaskMachine::restore(options, &limits, loaded.stored, now()).unwrap()
}

/// The smallest host there can be. Each line is said after its commit: `accepted` before the task may start, `started` before its body runs,
/// `ended` after.
fn run_until_killed(path: &Path) -> ! {
    let mut journal = TaskJournal::open(path).unwrap();
    let loaded = journal.load(0).unwrap();
    let mut payloads = loaded.payloads.clone();
    let mut machine = restored(loaded);
    let spec = TaskSpec { resources: vec![("api".into(), 1)], ..TaskSpec::new("p") };
    loop {
        let ids: Vec<TaskId> =
            (0..BATCH).map(|_| machine.submit(now(), &spec, Admission::default()).unwrap().id).collect();
        for id in &ids {
            payloads.insert(*id, Blob { codec: "text".into(), bytes: id.0.to_string().into() });
        }
        let effects: Vec<TaskEffect> = std::iter::from_fn(|| machine.poll_effect()).collect();
        let given = ids.iter().map(|id| Entry::Payload(*id, payloads[id].clone()));
        let mut entries: Vec<Entry> = given.collect();
        entries.extend(machine.take_facts().into_iter().map(|fact| Entry::Fact(0, fact)));
        journal.commit(&entries).unwrap();
        ids.iter().for_each(|id| println!("accepted {}", id.0));
        for effect in effects {
            match effect {
                TaskEffect::Start(start) => {
                    assert_eq!(payloads[&start.id].bytes, start.id.0.to_string().into_bytes());
                    println!("started {}", start.id.0);
                    machine.finish(now(), start.id, start.fence, TaskOutcome::Success, 0);
                }
                TaskEffect::Ended { id, .. } => {
                    payloads.remove(&id);
                    println!("ended {}", id.0);
                }
                TaskEffect::Stop { .. } => {}
            }
        }
        machine.handle_timeout(now());
    }
}

#[test]
fn what_was_accepted_is_run_however_often_the_scheduler_is_killed() {
    if let Some(path) = std::env::var_os(CHILD) {
        run_until_killed(Path::new(&path));
    }
    let rounds = if std::env::var_os("MIRAB_SOAK").is_some() { 100 } else { 4 };
    let home = Home::new();
    let mut said = Said::default();
    for round in 0..rounds {
        let mut child = start(&home.path());
        let lines = child.stdout.take().unwrap();
        // After another number of lines each time, in the middle of whatever it does then.
        let limit = 1 + (round * 7919) % 400;
        for (number, line) in BufReader::new(lines).lines().map_while(Result::ok).enumerate() {
            if number == limit {
                child.kill().unwrap();
            }
            said.read(&line);
        }
        child.wait().unwrap();
        said.check(&TaskJournal::open(home.path()).unwrap().load(0).unwrap().stored, round);
    }
    let run: BTreeSet<u64> = run_out(&home.path()).into_iter().chain(said.started.into_keys()).collect();
    assert!(said.accepted.len() > rounds && run.is_superset(&said.accepted), "all that was accepted was run");
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tests::scheduled_killed::what_was_accepted_is_run_however_often_the_scheduler_is_killed",
            "--nocapture",
        ])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[derive(Default)]
struct Said {
    accepted: BTreeSet<u64>,
    /// How often each was started.
    started: BTreeMap<u64, u32>,
    ended: BTreeSet<u64>,
}

impl Said {
    fn read(&mut self, line: &str) {
        // The first line follows what the test harness says.
        let mut words = line.rsplit(' ');
        let (Some(Ok(id)), Some(word)) = (words.next().map(str::parse), words.next()) else { return };
        let word = word.rsplit("...").next().unwrap_or(word);
        match word {
            "accepted" => assert!(self.accepted.insert(id), "task {id} was accepted twice"),
            "started" => {
                assert!(!self.ended.contains(&id), "task {id} runs again after its end was stored");
                *self.started.entry(id).or_default() += 1;
            }
            "ended" => _ = self.ended.insert(id),
            _ => {}
        }
    }

    /// Nothing that was accepted is gone, nothing that ended comes back, and what started more than once was running at each kill.
    fn check(&self, stored: &StoredTasks, round: usize) {
        for id in &self.accepted {
            let task = stored.tasks.get(&TaskId(*id)).unwrap_or_else(|| panic!("round {round}: task {id} is gone"));
            let started = self.started.get(id).copied().unwrap_or_default();
            let Progress { attempts, lost, .. } = task.progress;
            assert!(started <= attempts, "round {round}: task {id} started before that was stored");
            assert!(attempts <= lost + 1, "round {round}: task {id} was started again though it was not lost");
            assert!(task.end.is_some() || !self.ended.contains(id), "round {round}: task {id} had ended");
        }
        let ended = stored.tasks.values().filter(|task| task.end.is_some()).count();
        let counts = stored.counters.counts;
        assert_eq!((counts.submitted, counts.ended()), (stored.tasks.len() as u64, ended as u64), "round {round}");
    }
}

/// Lets all that is left run to its end, in this process.
fn run_out(path: &Path) -> BTreeSet<u64> {
    let mut machine = restored(TaskJournal::open(path).unwrap().load(0).unwrap());
    let mut at = now();
    let mut completed = BTreeSet::new();
    while !machine.is_idle() {
        while let Some(effect) = machine.poll_effect() {
            if let TaskEffect::Start(start) = effect {
                completed.insert(start.id.0);
                machine.finish(at, start.id, start.fence, TaskOutcome::Success, 0);
            }
        }
        at = machine.poll_timeout().unwrap_or(at).max(at);
        machine.handle_timeout(at);
    }
    completed
}
