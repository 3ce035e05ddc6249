//! The project's own tasks, run as `cargo xtask COMMAND`.
//!
//! Layer: outside all; it uses no crate of the workspace and none uses it.
//!
//! * `plan` is the page to edit: which crates, programs and time limits CI has.
//! * `ci` orders the steps and adds up; `steps` says what each one runs.
//! * `run` starts a command, shows its output as it comes and ends it when its time is over.
//! * `instructions` counts those that operations take.
//! * `fuzz` runs one test for longer.
//! * `tally` reads the counts out of what `cargo test` prints.
//! * `tidy` holds the checks of the source itself.

#![forbid(unsafe_code)]

mod ci;
mod fuzz;
mod instructions;
mod plan;
mod report;
mod run;
mod steps;
mod tally;
mod tidy;
mod workspace;

use std::env;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  ci [STEP...]   run everything that CI runs, or only the named steps
  tidy           check the source: layers, unsafe, orderings, pages, links
  loom [CRATE]   run the loom tests of all crates, or of one
  miri           run the tests that Miri understands
  sanitize KIND  run tests under a sanitizer: address or thread
  cross          check the portable crates for aarch64
  instructions [--accept]
                 count those that operations take and compare them with the
                 table, or enter them into it
  fuzz PARSER --secs N
                 give a parser inputs made by chance; `fuzz` lists them
  help           print this text

The steps and what they cover are set in xtask/src/plan.rs.
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.split_first() {
        Some((&"ci", names)) => ci::run(names),
        Some((&"loom", [])) => ci::run(&["loom"]),
        Some((&"loom", [name])) => ci::run_loom_of(name),
        Some((&name @ ("tidy" | "miri" | "cross" | "instructions"), [])) => ci::run(&[name]),
        Some((&"instructions", ["--accept"])) => ci::accept_instructions(),
        Some((&"fuzz", [name, "--secs", seconds])) => fuzz::run(name, seconds),
        Some((&"sanitize", [name])) => ci::run_sanitizer(name),
        Some((&"fuzz", [])) => {
            print!("{}", fuzz::list());
            ExitCode::SUCCESS
        }
        None | Some((&("help" | "--help" | "-h"), _)) => {
            print!("{HELP}{}", ci::steps_help());
            ExitCode::SUCCESS
        }
        Some(_) => {
            eprint!("xtask: unknown command: {}\n\n{HELP}", args.join(" "));
            ExitCode::from(2)
        }
    }
}
