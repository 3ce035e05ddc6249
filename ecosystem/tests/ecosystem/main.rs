//! What std, libc and widely used crates do on a fiber, in every mode a process can choose.
//!
//! A fiber is to be a thread as far as Rust and libc can tell. Each step does what programs do on
//! threads, and calls [`hop`](carry::hop) in between, so that every part runs on another OS thread
//! than the part before.
//!
//! A process chooses its mode once, so this program runs itself again for each ([`parent`],
//! [`child`]). Arguments are parts of step names to run; none means all.
//!
//! * [`mode`]: the ways to keep thread-locals that are tried.
//! * [`step`]: what a step is, and the list of all.
//! * [`carry`]: the OS threads that resume coroutines by turns.
//! * `steps`: the steps.

mod carry;
mod child;
mod mode;
mod parent;
mod step;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    match mode::Mode::from_environment() {
        Some(mode) => child::run(mode),
        None => parent::run(&std::env::args().skip(1).collect::<Vec<_>>()),
    }
}
