//! `gosched-bench`: the peers' benches on gosched.

use std::process::ExitCode;

fn main() -> ExitCode {
    gosched_bench::run(std::env::args().skip(1))
}
