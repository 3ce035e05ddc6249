//! What sleeping costs: timers, not processors.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::{count, ms};
use crate::variant::SLEEPS;

const QUESTION: &str = "What does it take that all sleep instead?";

/// The last sleeper may be this part of the time late that computing instead would take.
const SPREAD_MAX: f64 = 0.1;

/// From all cells of the variant.
pub(super) fn finding(cells: &Cells<'_>) -> Option<Finding> {
    let sleeps = cells.of(SLEEPS);
    let slowest = *sleeps.iter().max_by(|a, b| a.done.max.total_cmp(&b.done.max))?;
    Some(if sleeps.iter().all(|cell| spread(cell) <= SPREAD_MAX * computing_ns(cell)) {
        Finding::expected(QUESTION, timers(&sleeps))
    } else {
        Finding::unexpected(QUESTION, processors(slowest))
    })
}

/// How much later than the sleep alone the last one was done.
fn spread(cell: &Summary) -> f64 {
    cell.done.max - cell.work_ns
}

/// What all of it would take if it were computed.
fn computing_ns(cell: &Summary) -> f64 {
    cell.work_ns * cell.goroutines as f64 / cell.procs as f64
}

fn timers(sleeps: &[&Summary]) -> [String; 4] {
    let each = sleeps.iter().map(|cell| {
        let on = count(cell.procs, "processor");
        format!("{} ms on {on}", ms(cell.done.max))
    });
    let first = sleeps[0];
    [
        format!(
            "Timers, and next to no processor: all {} were done after {}, of which each slept {} ms.",
            count(first.goroutines, "goroutine"),
            each.collect::<Vec<_>>().join(", "),
            ms(first.work_ns),
        ),
        format!(
            "On {} {} timers fired, and the process used {} ms of CPU time, all of it to begin \
             goroutines and to wake them; computing instead would take {} ms.",
            count(first.procs, "processor"),
            first.counts.timers,
            ms(first.cpu_ns),
            ms(first.work_ns * first.goroutines as f64),
        ),
        "A sleeping goroutine is in no queue, so the sleeps lie beside each other however few \
         processors there are."
            .to_owned(),
        format!(
            "What the last one is late ({} ms) is the time to create all, to begin each (the \
             last after {} ms), and to wake them one after another.",
            ms(spread(first)),
            ms(first.wait.max),
        ),
    ]
}

fn processors(cell: &Summary) -> [String; 2] {
    [
        format!(
            "All sleeps were expected to lie beside each other, and to end soon after {} ms.",
            ms(cell.work_ns),
        ),
        format!(
            "The numbers do not show it: on {} the last one was done only after {} ms, where \
             computing takes {} ms, so sleepers waited for each other.",
            count(cell.procs, "processor"),
            ms(cell.done.max),
            ms(computing_ns(cell)),
        ),
    ]
}
