//! The benches of gosched: the same work, command line and line of JSON as its peers'.
//!
//! `bench/peers/README.md` says what each bench does and how `bench/peers/compare` sets ours
//! beside Go, tokio, may and OS threads; `docs/BENCHMARKS.md` says when a figure counts.
//! The programs `gosched-bench` and `gosched bench` are both [`run()`].
//!
//! Layer: a program; uses only what the facade `gosched` offers to everybody. Unsafe: an empty
//! `asm!` in `work`, `getrusage` in `process`.
//!
//! Invariants
//! * I1. Each bench checks its result, and panics when it is wrong: no figure without the work.
//! * I2. Tasks start only by [`tasks::spawn`], so that `verify=1` sees every one of them.
//! * I3. n, the unit of `ns_per_op` and the keys are the peers'; what is ours alone has a key of
//!   its own.

mod run;

mod args;
mod report;

mod benches;

mod gate;
mod http;
mod tasks;
mod verify;

mod process;
mod stats;
mod work;

pub use run::{names, run};
