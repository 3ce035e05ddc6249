//! What more processors bring.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::{count, ms, percent, times};
use crate::variant::BUSY;

const QUESTION: &str = "What do more processors bring?";

/// How far a speed-up may be from what the CPUs allow, as a part of that.
const OFF_MAX: f64 = 0.25;

/// Below this part of the CPU time that it could have had, a cell shared the machine.
const SHARE_MIN: f64 = 0.9;

/// From all cells of the busy variant, against the one with the fewest processors.
pub(super) fn finding(cells: &Cells<'_>) -> Option<Finding> {
    let busy = cells.of(BUSY);
    let (base, more) = busy.split_first()?;
    let figures = more.iter().map(|cell| figure(base, cell, cells.cpus)).collect::<Vec<_>>();
    let (first, cpus) = (more.first()?, cells.cpus);
    let figures = format!(
        "The last one was done after {} ms on {}, {}.",
        ms(base.done.max),
        count(base.procs, "processor"),
        figures.join(", "),
    );
    let off = |cell: &&&Summary| (speedup(base, cell) / possible(base, cell, cpus) - 1.0).abs();
    Some(match more.iter().find(|cell| off(cell) > OFF_MAX) {
        None => Finding::expected(QUESTION, [figures, limit(base, first, more, cpus)]),
        Some(cell) => Finding::unexpected(QUESTION, [figures, reason(base, cell, cpus)]),
    })
}

fn speedup(base: &Summary, cell: &Summary) -> f64 {
    base.done.max / cell.done.max.max(1.0)
}

fn possible(base: &Summary, cell: &Summary, cpus: usize) -> f64 {
    cell.procs.min(cpus) as f64 / base.procs.min(cpus) as f64
}

fn figure(base: &Summary, cell: &Summary, cpus: usize) -> String {
    format!(
        "{} ms on {} ({} times as fast, of {} possible)",
        ms(cell.done.max),
        cell.procs,
        times(speedup(base, cell)),
        times(possible(base, cell, cpus)),
    )
}

fn limit(base: &Summary, first: &Summary, more: &[&Summary], cpus: usize) -> String {
    let Some(over) = more.iter().find(|cell| cell.procs > cpus) else {
        return format!(
            "Up to {} the queue is served by as many at once, so the tail shrinks with each: one \
             begins every {} ms instead of every {} ms.",
            count(cpus, "CPU"),
            ms(first.queue.slope),
            ms(base.queue.slope),
        );
    };
    format!(
        "It is the CPUs that count, {cpus} here: on {} processors goroutines begin earlier, but \
         their threads share the CPUs, and each keeps a processor for {} ms instead of {} ms.",
        over.procs,
        ms(kept_ns(over)),
        ms(kept_ns(base)),
    )
}

/// How long a goroutine keeps a processor by the clock, all its turns together.
fn kept_ns(cell: &Summary) -> f64 {
    cell.elapsed_ns * cell.procs as f64 / cell.goroutines as f64
}

fn reason(base: &Summary, cell: &Summary, cpus: usize) -> String {
    let share = |cell: &Summary| cell.cpu_ns / (cell.elapsed_ns * cell.procs.min(cpus) as f64);
    let lowest = if share(base) < share(cell) { base } else { cell };
    let could = lowest.elapsed_ns * lowest.procs.min(cpus) as f64;
    let used = format!(
        "on {} the process used {} of the CPU time that it could have had",
        count(lowest.procs, "processor"),
        percent(lowest.cpu_ns, could),
    );
    if share(lowest) < SHARE_MIN {
        format!(
            "A speed-up of {} was expected on {}, and the numbers do not show it: {used}, so other \
             programs had the CPUs for a part of the time.",
            times(possible(base, cell, cpus)),
            count(cell.procs, "processor"),
        )
    } else {
        format!(
            "A speed-up of {} was expected on {}, and the numbers do not show it although {used}: \
             the CPUs were slower together than one alone, or the work did not spread.",
            times(possible(base, cell, cpus)),
            count(cell.procs, "processor"),
        )
    }
}
