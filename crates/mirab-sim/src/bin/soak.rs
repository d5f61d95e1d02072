//! Plays many random histories on the gate: `cargo run --release -p mirab-sim --bin soak -- --seeds 1000000 --from 0`.
//! Stops at the first difference and prints it, shrunk.
use mirab_core::Gate;
use mirab_sim::run_history;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const THREADS: u64 = 2;

fn option(name: &str, default: u64) -> u64 {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next().map_or(default, |value| value.parse().expect("a whole number"))
}

fn main() -> ExitCode {
    // A panic of the gate is told with its history; hundreds of them come while that is shrunk.
    std::panic::set_hook(Box::new(|_| {}));
    let (seeds, from) = (option("--seeds", 1_000_000), option("--from", 0));
    let (failed, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let play = |first: u64| {
        for seed in (from + first..from + seeds).step_by(THREADS as usize) {
            if failed.load(Ordering::Relaxed) {
                return;
            }
            if let Err(failure) = run_history::<Gate>(seed) {
                failed.store(true, Ordering::Relaxed);
                println!("{failure}");
            }
            if done.fetch_add(1, Ordering::Relaxed) % 100_000 == 99_999 {
                println!("{} histories", done.load(Ordering::Relaxed));
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|first| _ = scope.spawn(move || play(first))));
    println!("{} histories from seed {from}", done.into_inner());
    if failed.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
