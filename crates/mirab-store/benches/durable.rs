//! Durable submits, beside bare inserts into SQLite in batches of the same size, on the same disk, in the same run.
use mirab_core::{ResourceConfig, Time};
use mirab_flow::scheduler::*;
use mirab_store::{Blob, Entry, TaskJournal, TaskWriter};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

const TASKS: u64 = 200_000;
const BATCHES: [u64; 2] = [100, 1_000];
const PAYLOAD: usize = 100;

fn main() {
    println!("{TASKS} tasks with a payload of {PAYLOAD} bytes, WAL, synchronous=FULL; median of 3 rounds, per second");
    for batch in BATCHES {
        let (mut bare, mut submits, mut lives) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            bare.push(rate(|path| bare_inserts(path, batch)));
            submits.push(rate(|path| durable(path, batch, 0)));
            lives.push(rate(|path| durable(path, batch, 1_000)));
        }
        let [bare, submits, lives] = [bare, submits, lives].map(median);
        println!(
            "batches of {batch:5}: bare inserts {bare:9.0}, durable submits {submits:9.0} ({:.2} of it)",
            submits / bare
        );
        println!("                  submit, start, end, forget {lives:9.0}");
    }
}

/// Of a run in a folder of its own.
fn rate(run: impl FnOnce(&Path)) -> f64 {
    let home = tempfile::tempdir().expect("a folder for the file");
    let started = Instant::now();
    run(&home.path().join("state.db"));
    TASKS as f64 / started.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn bare_inserts(path: &Path, batch: u64) {
    let mut conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        .unwrap();
    conn.execute_batch("CREATE TABLE tasks (id INTEGER PRIMARY KEY, payload BLOB NOT NULL) STRICT").unwrap();
    let payload = vec![7_u8; PAYLOAD];
    for first in (0..TASKS).step_by(batch as usize) {
        let tx = conn.transaction().unwrap();
        for id in first..first + batch {
            let mut insert = tx.prepare_cached("INSERT INTO tasks VALUES (?, ?)").unwrap();
            insert.execute(params![id.cast_signed(), payload]).unwrap();
        }
        tx.commit().unwrap();
    }
}

/// With slots, each task runs to its end as soon as its start is stored; without, all wait.
fn durable(path: &Path, batch: u64, slots: u64) {
    let options = MachineOptions { durable: true, retained: 1_000, ..MachineOptions::default() };
    let mut machine = TaskMachine::new(options);
    machine.set_resource(Time(0), ResourceConfig::semaphore("gpu", 1_000)).unwrap();
    machine.set_pool(Time(0), PoolSpec::new("p", slots)).unwrap();
    let spec = TaskSpec { resources: vec![("gpu".into(), 1)], ..TaskSpec::new("p") };
    let writer = TaskWriter::start(TaskJournal::open(path).unwrap()).unwrap();
    let (told, committed) = channel();
    let (mut batches, mut answered) = (0, 0);
    for first in (0..TASKS).step_by(batch as usize) {
        let now = Time(1 + first);
        let mut entries = Vec::new();
        for _ in 0..batch {
            let id = machine.submit(now, &spec, Admission::default()).unwrap().id;
            entries.push(Entry::Payload(id, Blob { codec: "bytes".into(), bytes: vec![7; PAYLOAD] }));
        }
        entries.extend(machine.take_facts().into_iter().map(|fact| Entry::Fact(0, fact)));
        let told = told.clone();
        writer.put(entries, move |result| told.send(result).unwrap());
        batches += 1;
        // As a host would: what starts is carried out after its commit.
        if slots > 0 {
            committed.recv().unwrap().unwrap();
            answered += 1;
            while let Some(effect) = machine.poll_effect() {
                if let TaskEffect::Start(start) = effect {
                    machine.finish(now, start.id, start.fence, TaskOutcome::Success, 0);
                }
            }
        }
    }
    for _ in answered..batches {
        committed.recv().unwrap().unwrap();
    }
}
