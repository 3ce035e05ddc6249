//! The order of the steps, and the sum at the end.
//!
//! A failed step does not stop the run, so that one run shows all failures.
//! The last line stands alone: `N passed, M failed, K skipped`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::instructions;
use crate::plan::{self, minutes};
use crate::report::Report;
use crate::steps::{self, Context};
use crate::workspace::Workspace;

struct Step {
    name: &'static str,
    what: &'static str,
    limit: Duration,
    run: fn(&Context<'_>) -> Report,
}

/// The limits are for hangs, and several times what the steps take on two CPUs that do nothing else,
/// since the machine that runs this may have less.
const STEPS: &[Step] = &[
    Step { name: "fmt", what: "formatting", limit: minutes(5), run: steps::fmt },
    Step { name: "tidy", what: "checks of the source", limit: minutes(5), run: steps::tidy },
    Step { name: "clippy", what: "lints of all targets", limit: minutes(25), run: steps::clippy },
    Step { name: "debug", what: "all tests, debug", limit: minutes(45), run: steps::debug_tests },
    Step { name: "release", what: "tests, release", limit: minutes(45), run: steps::release_tests },
    Step {
        name: "torture",
        what: "minutes of preemption",
        limit: minutes(20),
        run: steps::torture,
    },
    Step { name: "extra", what: "crates outside", limit: minutes(30), run: steps::extra_crates },
    Step { name: "loom", what: "models of interleavings", limit: minutes(40), run: steps::loom },
    Step { name: "miri", what: "undefined behaviour", limit: minutes(30), run: steps::miri },
    Step { name: "doc", what: "documentation", limit: minutes(20), run: steps::doc },
    Step { name: "programs", what: "the command itself", limit: minutes(20), run: steps::programs },
    Step {
        name: "instructions",
        what: "how many an operation takes",
        limit: minutes(20),
        run: instructions::compare,
    },
    Step { name: "go", what: "Go's tools", limit: minutes(5), run: steps::go_tools },
    Step { name: "cross", what: "aarch64", limit: minutes(20), run: steps::cross },
];

/// What is run by hand only, since it builds the standard library first.
const SANITIZERS: &[Step] = &[
    Step {
        name: "address",
        what: "AddressSanitizer",
        limit: minutes(60),
        run: steps::sanitize_address,
    },
    Step {
        name: "thread",
        what: "ThreadSanitizer",
        limit: minutes(60),
        run: steps::sanitize_thread,
    },
];

/// A step that has ended.
struct Done {
    name: &'static str,
    report: Report,
    took: Duration,
    /// What it used of the CPUs.
    cpu: Duration,
}

/// Runs the named steps, or all when `names` is empty.
pub(crate) fn run(names: &[&str]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        eprintln!("xtask: no step is called {unknown}\n{}", steps_help());
        return ExitCode::from(2);
    }
    let chosen = STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name));
    run_steps(&chosen.collect::<Vec<_>>())
}

/// Enters what is counted now into the table of instructions.
pub(crate) fn accept_instructions() -> ExitCode {
    let what = "instructions of operations, accepted";
    let accept = Step { name: "instructions", what, limit: minutes(20), run: instructions::accept };
    run_steps(&[&accept])
}

/// Runs tests under the sanitizer with this name.
pub(crate) fn run_sanitizer(name: &str) -> ExitCode {
    let chosen: Vec<_> = SANITIZERS.iter().filter(|step| step.name == name).collect();
    if chosen.is_empty() {
        eprintln!("xtask: no sanitizer is called {name}; there are address and thread");
        return ExitCode::from(2);
    }
    run_steps(&chosen)
}

/// Runs the loom tests of one crate.
pub(crate) fn run_loom_of(name: &str) -> ExitCode {
    let workspace = match Workspace::load() {
        Ok(workspace) => workspace,
        Err(error) => return no_workspace(&error),
    };
    let start = Instant::now();
    let context = Context { workspace: &workspace, deadline: start + plan::TOTAL };
    let report = steps::loom_of(&context, name);
    let cpu = children_cpu().unwrap_or_default();
    finish(vec![Done { name: "loom", report, took: start.elapsed(), cpu }])
}

/// The names of the steps, for the help text.
pub(crate) fn steps_help() -> String {
    let mut text = String::from("\nSteps of ci:\n");
    for step in STEPS {
        let minutes = step.limit.as_secs() / 60;
        let _ = writeln!(text, "  {:<12} {:<26} at most {minutes} min", step.name, step.what);
    }
    text
}

fn run_steps(chosen: &[&Step]) -> ExitCode {
    let workspace = match Workspace::load() {
        Ok(workspace) => workspace,
        Err(error) => return no_workspace(&error),
    };
    let end = Instant::now() + plan::TOTAL;
    finish(chosen.iter().map(|step| run_step(step, &workspace, end)).collect())
}

fn run_step(step: &Step, workspace: &Workspace, end: Instant) -> Done {
    println!("\n== {}: {}", step.name, step.what);
    let start = Instant::now();
    let before = children_cpu().unwrap_or_default();
    let mut report = if start >= end {
        Report::fail("not run: the steps before it used up the whole time")
    } else {
        let deadline = end.min(start + step.limit);
        (step.run)(&Context { workspace, deadline })
    };
    if report == Report::default() {
        report = Report::fail("the step ran nothing");
    }
    let took = start.elapsed();
    let cpu = children_cpu().unwrap_or_default().saturating_sub(before);
    for reason in &report.skips {
        println!("SKIPPED: {reason}");
    }
    for failure in &report.failures {
        println!("FAILED: {failure}");
    }
    println!("-- {}: {} in {:.1} s", step.name, report.counts(), took.as_secs_f64());
    Done { name: step.name, report, took, cpu }
}

/// The CPU time of all processes that have ended and been waited for, by us or by one of them.
fn children_cpu() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in parentheses: fields 16 and 17 of proc(5).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}

/// Prints the sum and turns it into the exit code.
fn finish(done: Vec<Done>) -> ExitCode {
    println!("\n== summary");
    for Done { name, report, took, cpu } in &done {
        let (took, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
        println!("{name:<12} {:<44} {took:>7.1} s {cpu:>7.1} s of CPU", report.counts());
    }
    print_once("Skipped", &done, |report| &report.skips);
    for story in done.iter().flat_map(|step| &step.report.stories) {
        println!("\nWhat was printed by {story}");
    }
    print_once("Failed", &done, |report| &report.failures);
    let mut total = Report::default();
    done.into_iter().for_each(|step| total.absorb(step.report));
    println!("\n{}", total.counts());
    if total.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lists the lines that `pick` takes from each report, each line once.
fn print_once(title: &str, done: &[Done], pick: fn(&Report) -> &Vec<String>) {
    let lines: BTreeSet<String> = done
        .iter()
        .flat_map(|step| pick(&step.report).iter().map(|line| format!("{}: {line}", step.name)))
        .collect();
    if !lines.is_empty() {
        println!("\n{title}:");
    }
    for line in lines {
        println!("  {line}");
    }
}

fn no_workspace(error: &str) -> ExitCode {
    println!("FAILED: the workspace cannot be read: {error}\n\n0 passed, 1 failed, 0 skipped");
    ExitCode::FAILURE
}
