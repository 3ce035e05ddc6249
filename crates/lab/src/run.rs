//! All cells, one after another.

use crate::plan::Plan;
use crate::record::{Cell, Measured};
use crate::traced::Traced;
use crate::{child, work};
use serde::Serialize;
use std::path::Path;
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
    /// The repetitions with a trace that succeeded.
    pub traced: Vec<Traced>,
    /// The cells that did not.
    pub failures: Vec<Failure>,
}

/// How far a run is; told before and after each cell.
#[derive(Debug)]
pub struct Progress<'run> {
    /// Cells that have ended, this one included if it has.
    pub ended: usize,
    /// Cells altogether, repetitions with a trace included.
    pub cells: usize,
    /// The one that begins or ended now.
    pub cell: &'run Cell,
    /// How it ended; none if it begins.
    pub end: Option<End<'run>>,
}

/// How a cell ended.
#[derive(Debug)]
pub struct End<'run> {
    /// How long it took, the start of its process included.
    pub took: Duration,
    /// Why it has no numbers, if it has none.
    pub failed: Option<&'run str>,
}

/// Runs `plan`. `command`, given a cell as JSON, describes a process that hands it to
/// [`measure`](crate::measure) and prints the result as JSON. Traces go to `folder`, which exists.
pub fn run(
    plan: Plan,
    folder: &Path,
    command: &dyn Fn(&str) -> Command,
    mut progress: impl FnMut(&Progress<'_>),
) -> Run {
    let rounds = work::calibrate(plan.work);
    let cpus = gosched::runtime::num_cpu();
    let (cells, repeated) = (plan.cells(rounds, cpus), plan.traced(rounds));
    let count = cells.len() + repeated.len();
    let mut run = Run { plan, cpus, rounds, measured: vec![], traced: vec![], failures: vec![] };
    let mut ended = 0;
    let mut attempt = |cell: &Cell, measure: &mut dyn FnMut() -> Result<(), String>| {
        progress(&Progress { ended, cells: count, cell, end: None });
        let began = Instant::now();
        let failed = measure().err();
        ended += 1;
        let end = Some(End { took: began.elapsed(), failed: failed.as_deref() });
        progress(&Progress { ended, cells: count, cell, end });
        failed.map(|reason| Failure { cell: cell.clone(), reason })
    };
    for cell in &cells {
        let failure = attempt(cell, &mut || {
            run.measured.push(child::measure(cell, command)?);
            Ok(())
        });
        run.failures.extend(failure);
    }
    for cell in repeated {
        let file = format!("{}-{}.trace", cell.variant, cell.procs);
        let cell = Cell { trace: Some(folder.join(&file)), ..cell };
        let failure = attempt(&cell, &mut || {
            let measured = child::measure(&cell, command)?;
            run.traced.push(Traced::read(&measured, folder, &file)?);
            Ok(())
        });
        run.failures.extend(failure);
    }
    run
}
