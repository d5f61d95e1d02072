//! A writer that is killed: what it said was committed is there.
use super::Home;
use crate::SqliteStore;
use crate::conformance::samples::{Dice, event};
use mirab_flow::{Counters, Fact, Journal};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Set for the child, which is this test once more: the store to write.
const CHILD: &str = "MIRAB_TEST_STORE_TO_WRITE";
const WORD: &str = "committed ";

fn write_until_killed(path: &OsStr) -> ! {
    let mut store = SqliteStore::open(path).unwrap();
    for seq in 1.. {
        let counters = Counters { next_event: seq + 1, ..Counters::default() };
        store.commit(&[Fact::Event(event(seq, 1, &mut Dice::new(seq))), Fact::Counters(counters)]).unwrap();
        println!("{WORD}{seq}");
    }
    unreachable!("numbers do not end")
}

#[test]
fn what_was_said_to_be_committed_survives_a_kill() {
    if let Some(path) = std::env::var_os(CHILD) {
        write_until_killed(&path);
    }
    let home = Home::new();
    for round in 1..=3 {
        let store = home.path().with_extension(round.to_string());
        let said = said_until_killed(&store, 100 * round);
        let mut opened = SqliteStore::open(&store).unwrap();
        let stored = opened.reader().all_events(0, u32::MAX).unwrap();
        let expected: Vec<_> = (1..=stored.len() as u64).map(|seq| event(seq, 1, &mut Dice::new(seq))).collect();
        assert_eq!(stored, expected);
        // The kill may fall between the commit and the word.
        assert!(stored.len() == said || stored.len() == said + 1, "said {said}, stored {}", stored.len());
        assert_eq!(opened.load().unwrap().counters.next_event, stored.len() as u64 + 1);
    }
}

/// Starts the writer, kills it after so many commits, and gives the last number that it said.
fn said_until_killed(store: &std::path::Path, commits: usize) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::killed::what_was_said_to_be_committed_survives_a_kill", "--nocapture"])
        .env(CHILD, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.filter_map(|line| line.split(WORD).nth(1)?.parse().ok());
    let mut last = 0;
    for number in said {
        last = number;
        if number == commits {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    last
}
