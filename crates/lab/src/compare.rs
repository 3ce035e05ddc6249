//! The same jobs on goroutines, on operating system threads, on a thread pool and on an event loop.
//!
//! ```text
//! Options -> Case (one contender with one kind of work)
//!         -> a child process each: measure -> Outcome, as JSON on its standard output
//!         -> Figures -> findings -> table, compare.html, compare.json
//! ```
//!
//! Invariants
//! * C1. All contenders get the same jobs from the same loop, and ask the same service.
//! * C2. A finding is a function of the numbers, and says so when they don't show what is expected.

mod case;
mod contenders;
#[cfg(feature = "tokio")]
mod event_loop;
mod figures;
mod findings;
mod job;
mod page;
mod service;

pub use case::{Case, Contender, Options, Outcome, Work};
pub use contenders::measure;
pub use figures::Figures;

use crate::findings::Finding;
use crate::{child, text, work};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io};

/// What a comparison found; as JSON what `gosched compare --json` prints.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The version of the runtime.
    pub version: &'static str,
    /// CPUs that the processes may use.
    pub cpus: usize,
    /// What was asked for.
    pub options: Options,
    /// Rounds of computing that take a millisecond.
    pub rounds_per_ms: u64,
    /// Every case that succeeded, in a few numbers.
    pub figures: Vec<Figures>,
    /// What the numbers say.
    pub findings: Vec<Finding>,
    /// Cases without numbers, and why.
    pub failures: Vec<String>,
    /// All that was measured: of each case the repetition with the median time.
    pub outcomes: Vec<Outcome>,
}

/// How far a comparison is; told before and after each process.
#[derive(Debug)]
pub struct Step<'run> {
    /// Processes that have ended, this one included if it has.
    pub ended: usize,
    /// Processes altogether.
    pub all: usize,
    /// What runs in it.
    pub case: &'run Case,
    /// How long it took, and why it has no numbers, if it has none; none if it begins.
    pub end: Option<(Duration, Option<&'run str>)>,
}

/// Runs all cases one after another. `command`, given a [`Case`] as JSON, describes a process that
/// hands it to [`measure`] and prints the [`Outcome`] as JSON.
///
/// # Errors
/// If the service that jobs ask can't listen. A case that fails is in [`Comparison::failures`].
pub fn run(
    options: Options,
    command: &dyn Fn(&str) -> Command,
    mut tell: impl FnMut(&Step<'_>),
) -> io::Result<Comparison> {
    let rounds_per_ms = work::calibrate(Duration::from_millis(1));
    let cpus = gosched::runtime::num_cpu();
    case::raise_descriptor_limit();
    let service = service::Service::start()?;
    let cases = options.cases(cpus, rounds_per_ms, service.address());
    let all = cases.len() * options.repetitions;
    let (mut ended, mut failures) = (0, Vec::new());
    let mut repeated: Vec<Vec<Outcome>> = vec![Vec::new(); cases.len()];
    // All once, then all again: what disturbs the machine for a while falls on several.
    for _ in 0..options.repetitions {
        for (case, outcomes) in cases.iter().zip(&mut repeated) {
            tell(&Step { ended, all, case, end: None });
            let began = Instant::now();
            let result = of_child(case, command);
            ended += 1;
            let failed = result.as_ref().err().map(String::as_str);
            tell(&Step { ended, all, case, end: Some((began.elapsed(), failed)) });
            match result {
                Ok(outcome) => outcomes.push(outcome),
                Err(reason) => {
                    let Case { contender, work, .. } = case;
                    failures.push(format!("{} with {}: {reason}", contender.name(), work.name()));
                }
            }
        }
    }
    let outcomes: Vec<Outcome> = repeated.into_iter().filter_map(median).collect();
    let figures: Vec<Figures> = outcomes.iter().map(Figures::of).collect();
    Ok(Comparison {
        version: gosched::runtime::version(),
        cpus,
        findings: findings::all(&figures),
        options,
        rounds_per_ms,
        figures,
        failures,
        outcomes,
    })
}

/// The one with the median time.
fn median(mut outcomes: Vec<Outcome>) -> Option<Outcome> {
    outcomes.sort_by_key(|outcome| outcome.elapsed_ns);
    let middle = outcomes.len() / 2;
    outcomes.into_iter().nth(middle)
}

fn of_child(case: &Case, command: &dyn Fn(&str) -> Command) -> Result<Outcome, String> {
    let json = serde_json::to_string(case).map_err(|error| error.to_string())?;
    let mut command = command(&json);
    // The case says how many processors there are.
    command.env_remove("GOMAXPROCS");
    let outcome: Outcome = child::result(command, case.time_limit())?;
    outcome.check()?;
    Ok(outcome)
}

impl Comparison {
    /// One line about what was run where.
    pub(crate) fn setup(&self) -> String {
        format!(
            "{}: {} of each kind, {}, a pool of {}; {}",
            self.version,
            text::count(self.options.jobs, "job"),
            text::count(self.cpus, "processor"),
            text::count(self.options.pool, "thread"),
            text::count(self.cpus, "CPU"),
        )
    }

    /// The table and what it says, for a terminal.
    #[must_use]
    pub fn terminal(&self) -> String {
        let mut out = format!("{}\n\n", self.setup());
        out.push_str(&figures::table(&self.figures).plain());
        for Finding { question, answer, .. } in &self.findings {
            let _ = write!(out, "\n{question}\n{}\n", text::wrapped(&answer.join(" "), "  "));
        }
        for failure in &self.failures {
            let _ = write!(out, "\nNo numbers for {failure}\n");
        }
        if !Contender::EventLoop.is_built_in() {
            out.push_str(
                "\nThe event loop (tokio) is not built in; `--features tokio` of cargo does it.\n",
            );
        }
        out
    }

    /// Writes compare.html and compare.json into `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("compare.json"), serde_json::to_string(self)?)?;
        fs::write(folder.join("compare.html"), page::of(self))
    }
}

#[cfg(test)]
mod tests;
