//! What every journal must do, split by concern. A driver passes it with [`conformance_suite!`](crate::conformance_suite).
pub mod atomicity;
pub mod buckets;
pub mod counters;
pub mod events;
pub mod learned;
pub mod leases;
pub mod runs;
pub mod samples;
pub mod tasks;
mod view;

pub use view::View;

use mirab_flow::{Fact, Journal, Stored};

/// Makes the stores of one kind.
pub trait Driver {
    /// The store.
    type Journal: Journal;

    /// An empty store.
    fn create(&mut self) -> Self::Journal;

    /// The same store as it is after a restart.
    fn reopen(&mut self, journal: Self::Journal) -> Self::Journal;

    /// What its readers see.
    fn view<'a>(&'a self, journal: &'a Self::Journal) -> Box<dyn View + 'a>;
}

/// Commits the facts to a new store and starts it again.
fn stored<D: Driver>(driver: &mut D, facts: &[Fact]) -> D::Journal {
    let mut journal = driver.create();
    commit(&mut journal, facts);
    driver.reopen(journal)
}

fn commit(journal: &mut impl Journal, facts: &[Fact]) {
    journal.commit(facts).unwrap_or_else(|error| panic!("the commit failed: {error}"));
}

fn load(journal: &mut impl Journal) -> Stored {
    journal.load().unwrap_or_else(|error| panic!("the load failed: {error}"))
}

/// The suite as tests of one driver: `conformance_suite!(memory, MemoryDriver::new());` makes a module `memory`.
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident, $driver:expr) => {
        mod $name {
            use super::*;
            $crate::conformance_suite!(@tests $driver;
                runs: come_back_whole, are_replaced, ended_ones_are_not_loaded, are_listed_newest_first,
                      are_narrowed, are_paged, are_found_by_key, are_counted_by_state;
                tasks: come_back_whole, only_those_of_the_latest_attempt_are_loaded, are_read_by_run;
                leases: come_back_whole, end_once;
                events: come_back_whole, are_paged_without_a_gap, are_never_replaced;
                learned: durations_come_back, totals_are_replaced, come_back_whole;
                buckets: come_back_whole, are_replaced;
                counters: start_at_nothing, are_replaced, settings_and_projects_come_back_in_order;
                atomicity: a_refused_group_leaves_nothing, the_last_fact_of_a_group_wins, nothing_is_a_commit;
            );
        }
    };
    (@tests $driver:expr; $($concern:ident: $($test:ident),+;)+) => {
        $(mod $concern {
            use super::*;
            $(#[test]
            fn $test() {
                $crate::conformance::$concern::$test(&mut $driver);
            })+
        })+
    };
}
