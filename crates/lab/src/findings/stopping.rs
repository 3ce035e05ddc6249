//! Whether anything stops a goroutine that computes and never calls the runtime.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::count;
use crate::variant::{BUSY, UNSTOPPED};

/// One finding for each of the two variants that has numbers.
pub(super) fn findings(cells: &Cells<'_>) -> Vec<Finding> {
    [with_preemption(&cells.of(BUSY)), without_preemption(&cells.of(UNSTOPPED))]
        .into_iter()
        .flatten()
        .collect()
}

fn with_preemption(cells: &[&Summary]) -> Option<Finding> {
    let worst = most_open(cells)?;
    let question = question(BUSY);
    Some(if is_stopped(worst) {
        let why = "That is asynchronous preemption, as in Go since 1.14: who has computed for 10 \
                   ms while others wait is stopped, and who computes when a sleeper is due.";
        Finding::expected(&question, [stopped(worst), why.to_owned()])
    } else {
        let why = "It was expected to be stopped, as in Go since 1.14; either `GOSCHED` turns \
                   that off, or this machine can't, or nobody else had anything to do.";
        Finding::unexpected(&question, [never(cells), why.to_owned()])
    })
}

fn without_preemption(cells: &[&Summary]) -> Option<Finding> {
    let worst = most_open(cells)?;
    let question = question(UNSTOPPED);
    Some(if is_stopped(worst) {
        let why = "It was expected not to be: `asyncpreemptoff=1` forbids it, and without being \
                   stopped no more than one for each processor can be open.";
        Finding::unexpected(&question, [stopped(worst), why.to_owned()])
    } else {
        let why = "This is the world before Go 1.14: once a goroutine computes, nothing takes its \
                   processor away before it is done, and only calls of the runtime give way.";
        Finding::expected(&question, [never(cells), why.to_owned()])
    })
}

fn question(variant: &str) -> String {
    format!("Is a goroutine stopped while it computes (*{variant}*)?")
}

/// The cell with the most that one processor can't have to do with; of equals, with most stops.
fn most_open<'run>(cells: &[&'run Summary]) -> Option<&'run Summary> {
    cells.iter().copied().max_by_key(|cell| (too_many(cell), cell.counts.stops))
}

/// Goroutines that had begun and were not done, beyond one for each processor: one that is stopped
/// for another stays open beside it.
fn too_many(cell: &Summary) -> usize {
    cell.open_at_once.saturating_sub(cell.procs)
}

/// By what was seen of the goroutines from outside, or by what the runtime counted: one that is
/// stopped for the probe alone goes on at once and is never open beside another.
fn is_stopped(cell: &Summary) -> bool {
    too_many(cell) > 0 || cell.counts.stops > 0
}

fn stopped(cell: &Summary) -> String {
    format!(
        "Yes, stopped: on {} the runtime stopped goroutines {} times in the middle of a loop that \
         never calls it, and up to {} had begun and not ended.",
        count(cell.procs, "processor"),
        cell.counts.stops,
        count(cell.open_at_once, "goroutine"),
    )
}

fn never(cells: &[&Summary]) -> String {
    let each = cells
        .iter()
        .map(|cell| format!("{} on {}", cell.open_at_once, count(cell.procs, "processor")));
    format!(
        "No: at no time had more goroutines begun and not ended than there are processors (at \
         most {}), and the runtime stopped none.",
        each.collect::<Vec<_>>().join(", "),
    )
}
