//! All cells, one after another.

use crate::plan::Plan;
use crate::record::{Cell, Measured};
use crate::{child, work};
use serde::Serialize;
use std::process::Command;
use std::time::{Duration, Instant};

/// A cell without numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// What was asked for.
    pub cell: Cell,
    /// Why there is nothing.
    pub reason: String,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was asked for.
    pub plan: Plan,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// Rounds of computing that are the work.
    pub rounds: u64,
    /// The cells that succeeded, in the order of the plan.
    pub measured: Vec<Measured>,
    /// The cells that did not.
    pub failures: Vec<Failure>,
}

/// How far a run is; told after each cell.
#[derive(Debug)]
pub struct Progress<'run> {
    /// Cells that have ended, this one included.
    pub ended: usize,
    /// Cells altogether.
    pub cells: usize,
    /// The one that ended now.
    pub cell: &'run Cell,
    /// How long it took, the start of its process included.
    pub took: Duration,
    /// Why it has no numbers, if it has none.
    pub failed: Option<&'run str>,
}

/// Runs `plan`. `command`, given a cell as JSON, describes a process that hands it to
/// [`measure`](crate::measure) and prints the result as JSON.
pub fn run(
    plan: Plan,
    command: &dyn Fn(&str) -> Command,
    mut progress: impl FnMut(&Progress<'_>),
) -> Run {
    let rounds = work::calibrate(plan.work);
    let cells = plan.cells(rounds);
    let cpus = gosched::runtime::num_cpu();
    let mut run = Run { plan, cpus, rounds, measured: Vec::new(), failures: Vec::new() };
    for (i, cell) in cells.iter().enumerate() {
        let began = Instant::now();
        let result = child::measure(cell, command);
        progress(&Progress {
            ended: i + 1,
            cells: cells.len(),
            cell,
            took: began.elapsed(),
            failed: result.as_ref().err().map(String::as_str),
        });
        match result {
            Ok(measured) => run.measured.push(measured),
            Err(reason) => run.failures.push(Failure { cell: cell.clone(), reason }),
        }
    }
    run
}
