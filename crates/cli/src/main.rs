//! The command `gosched`.
//!
//! Layer: a program. Unsafe: none. What it does is in the crates below; here are its command
//! line, what it prints, and its exit codes: 0 done, 1 failed, 2 a wrong command line.
#![forbid(unsafe_code)]

mod args;
mod bar;
mod compare;
mod demo;
mod doctor;
mod lab;
mod outcome;
mod pages;
mod serve;
mod top;
mod trace;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Lab(args) => lab::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Bench(args) => gosched_bench::run(args.words()),
        Command::Completions(args) => pages::completions(&args),
        Command::Man(args) => pages::man(&args),
    }
}
