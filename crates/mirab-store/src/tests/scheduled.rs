//! The file of an embedded scheduler.
use super::Home;
use crate::{Blob, Entry, TaskJournal, TaskStoreError, TaskWriter};
use mirab_core::{ResourceConfig, SECOND, Time};
use mirab_flow::scheduler::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;

fn blob(id: TaskId) -> Blob {
    Blob { codec: "json".into(), bytes: id.0.to_le_bytes().into() }
}

fn machine(shard_number: u8) -> TaskMachine {
    let options = MachineOptions { retained: 5, durable: true, shard_number, ..MachineOptions::default() };
    let mut machine = TaskMachine::new(options);
    machine.set_resource(Time(0), ResourceConfig::token_bucket("api", 0.5, 9).unwrap()).unwrap();
    machine.set_pool(Time(0), PoolSpec::new("p", 2)).unwrap();
    machine
}

/// A task of every kind, each in another place.
fn admit(machine: &mut TaskMachine, now: Time, round: u64) {
    let plain = TaskSpec::new("p");
    let full = TaskSpec {
        kind: "k".into(),
        resources: vec![("api".into(), 2)],
        tags: vec!["t\"".into()],
        timeout: Some(u64::MAX),
        retry: Retry { retries: u32::MAX, base: u64::MAX, cap: 3 },
        ..plain.clone()
    };
    let key = (round < 3).then(|| format!("key {round}"));
    let admission = Admission { priority: -5, key, digest: u64::MAX - round, ..Admission::default() };
    let first = machine.submit(now, &full, admission).unwrap().id;
    let later =
        Admission { not_before: Some(now.plus(SECOND)), start_by: Some(now.plus(9 * SECOND)), ..Admission::default() };
    let second = machine.submit(now, &plain, later).unwrap().id;
    let after = vec![(first, On::Success), (second, On::Completion), (first, On::Failure)];
    machine.submit(now, &plain, Admission { after, ..Admission::default() }).unwrap();
}

/// What a host does in a step: lets some attempts end, and gives what is to be stored.
fn step(machine: &mut TaskMachine, now: Time, round: u64) -> Vec<TaskFact> {
    admit(machine, now, round);
    machine.handle_timeout(now);
    while let Some(effect) = machine.poll_effect() {
        let TaskEffect::Start(start) = effect else { continue };
        let outcome = match start.fence.0 % 4 {
            0 => TaskOutcome::Success,
            1 => TaskOutcome::Failure { message: "no 'luck'".into(), again: Again::Never },
            2 => TaskOutcome::Failure { message: String::new(), again: Again::After(SECOND) },
            _ => continue,
        };
        machine.finish(now, start.id, start.fence, outcome, 0);
    }
    let oldest = machine.live().next();
    oldest.filter(|_| round.is_multiple_of(3)).map(|id| machine.cancel(now, id));
    machine.take_facts()
}

#[test]
fn what_comes_back_is_what_was_stored_for_every_shard() {
    let home = Home::new();
    for shard in [0, 1, 127, 128, 255] {
        let (mut machine, mut expected) = (machine(shard), StoredTasks::default());
        let (mut payloads, mut results) = (BTreeMap::new(), BTreeMap::new());
        for round in 0..20 {
            let facts = step(&mut machine, Time(round * SECOND / 2), round);
            let mut entries: Vec<Entry> = facts.iter().cloned().map(|fact| Entry::Fact(shard, fact)).collect();
            for fact in facts {
                match &fact {
                    TaskFact::Accepted(task) => {
                        entries.insert(0, Entry::Payload(task.id, blob(task.id)));
                        payloads.insert(task.id, blob(task.id));
                    }
                    TaskFact::Ended(id, _) => {
                        entries.insert(0, Entry::Result(*id, blob(*id)));
                        payloads.remove(id);
                        results.insert(*id, blob(*id));
                    }
                    TaskFact::Forgotten(id) => _ = results.remove(id),
                    _ => {}
                }
                expected.apply(fact);
            }
            // A new connection each time: nothing is in memory only.
            TaskJournal::open(home.path()).unwrap().commit(&entries).unwrap();
            let loaded = TaskJournal::open(home.path()).unwrap().load(shard).unwrap();
            assert_eq!(loaded.stored, expected, "shard {shard}, round {round}");
            assert_eq!((&loaded.payloads, &loaded.results), (&payloads, &results), "shard {shard}, round {round}");
        }
        assert!(expected.buckets.contains_key("api") && results.len() == 5 && payloads.len() > 5);
    }
}

#[test]
fn nobody_else_opens_what_is_open() {
    let home = Home::new();
    let journal = TaskJournal::open(home.path()).unwrap();
    let error = TaskJournal::open(home.path()).unwrap_err();
    assert_eq!(error.code(), "StoreLocked");
    let told = error.to_string();
    assert!(told.contains("store.sqlite is in use by another scheduler or program: end that one first"), "{told}");
    drop(journal);
    TaskJournal::open(home.path()).unwrap();
}

#[test]
fn what_is_no_store_of_a_scheduler_is_told_and_left_as_it_is() {
    let home = Home::new();
    let told = |expected: &str| {
        let error = TaskJournal::open(home.path()).unwrap_err();
        assert_eq!(error.code(), "StoreUnavailable");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let text = "a text, and no database at all. ".repeat(40);
    std::fs::write(home.path(), &text).unwrap();
    told("is no store of a scheduler: it is not a SQLite database; expected a file that a scheduler made");
    assert_eq!(std::fs::read_to_string(home.path()).unwrap(), text);
    std::fs::remove_file(home.path()).unwrap();
    drop(home.open());
    told("it is a SQLite database of another program");
    home.open();
    std::fs::remove_file(home.path()).unwrap();
    drop(TaskJournal::open(home.path()).unwrap());
    Connection::open(home.path()).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    told("has version 9, this program knows versions up to 1: use the mirab that wrote it");
    let nowhere = home.path().join("no").join("folder");
    assert!(matches!(TaskJournal::open(nowhere), Err(TaskStoreError::Create { .. })));
}

#[test]
fn the_writer_answers_in_order_and_after_a_commit_that_failed_with_that_failure() {
    let home = Home::new();
    let (told, answers) = channel();
    let mut machine = machine(0);
    let writer = TaskWriter::start(TaskJournal::open(home.path()).unwrap()).unwrap();
    let put = |number: usize, entries: Vec<Entry>| {
        let told = told.clone();
        writer.put(entries, move |result| told.send((number, result.map_err(|error| error.to_string()))).unwrap());
    };
    let facts: Vec<Entry> = step(&mut machine, Time(0), 0).into_iter().map(|fact| Entry::Fact(0, fact)).collect();
    put(0, facts.clone());
    assert_eq!(answers.recv().unwrap(), (0, Ok(())));
    // The same tasks once more: their ids are taken.
    put(1, facts);
    put(2, vec![Entry::Payload(TaskId(77), blob(TaskId(77)))]);
    let failed: Vec<_> = [answers.recv().unwrap(), answers.recv().unwrap()].into();
    assert!(matches!(&failed[..], [(1, Err(first)), (2, Err(second))] if first == second), "{failed:?}");
    drop(writer);
    let loaded = TaskJournal::open(home.path()).unwrap().load(0).unwrap();
    assert_eq!((loaded.stored.tasks.len(), loaded.payloads.len()), (3, 0));
}
