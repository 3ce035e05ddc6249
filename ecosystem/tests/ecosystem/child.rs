//! One process, one mode: runs steps and says on standard output how each went.

use crate::carry::{Carriers, coroutine};
use crate::mode::Mode;
use crate::step::{self, Run, Step};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Starts a line that is for the parent.
pub(crate) const MARK: &str = "@step ";

/// Runs the steps whose names are the arguments.
pub(crate) fn run(mode: Mode) -> ExitCode {
    if let Err(why) = mode.choose() {
        say(&format!("unavailable: {why}"));
        return ExitCode::FAILURE;
    }
    let carriers = Carriers::start();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for step in step::all().filter(|step| wanted.iter().any(|name| name == step.name)) {
        say("begin");
        match catch_unwind(AssertUnwindSafe(|| run_step(step, &carriers))) {
            Ok(()) => say("ok"),
            Err(payload) => say(&format!("failed: {}", text_of(&*payload))),
        }
    }
    ExitCode::SUCCESS
}

fn run_step(step: &Step, carriers: &Carriers) {
    match step.run {
        Run::Outside(f) => f(carriers),
        Run::Inside(f) => {
            carriers.run(f);
            carriers.drive(vec![coroutine(f), coroutine(f)]);
        }
    }
}

/// Says something to the parent, or to whoever called the child by hand.
pub(crate) fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{}", what.replace('\n', " | ")).expect("standard output is open");
    out.flush().expect("standard output is open");
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or("a panic".to_owned())
}
