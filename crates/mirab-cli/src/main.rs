//! The `mirab` binary.

fn main() {
    std::process::exit(mirab_cli::run(std::env::args_os().skip(1).collect(), None));
}
