//! The life of work in virtual time, against a journal in memory that can be told to fail.
mod balances;
mod gate;
mod histories;
mod leases;
mod limits;
mod memory;
mod names;
mod overlap;
mod queue;
mod restart;
mod retries;
mod runs;
mod store_failures;
mod tasks;
mod ways;
mod world;
