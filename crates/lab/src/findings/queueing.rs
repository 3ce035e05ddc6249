//! Why the tail is long when nobody gives way: the queue.
//!
//! First runs are in a line whether goroutines are stopped or not; what differs is how long each
//! keeps its processor the first time, and who is done when.

use super::{Cells, Finding, cpu_time};
use crate::summary::Summary;
use crate::text::{count, ms, percent, times};
use crate::variant::{self, BUSY, UNSTOPPED, Variant};

/// How well a line has to fit the first runs.
const R2_MIN: f64 = 0.95;

/// How far its slope may be from a turn, as a part of the turn.
const SLOPE_OFF_MAX: f64 = 0.25;

/// From where on computing counts as slow, as a multiple of the work.
const SLOW_MIN: f64 = 1.2;

/// Up to where the median completion, as a part of the last one, counts as in the middle.
const MIDDLE_MAX: f64 = 0.65;

/// One finding for each of the two variants that has numbers, on the fewest processors, where the
/// queue is longest.
pub(super) fn findings(cells: &Cells<'_>) -> Vec<Finding> {
    let first = |name| Some(finding(variant::find(name)?, cells.of(name).first()?));
    [first(BUSY), first(UNSTOPPED)].into_iter().flatten().collect()
}

fn finding(variant: &Variant, cell: &Summary) -> Finding {
    let on = count(cell.procs, "processor");
    let question =
        format!("Why is the tail long on {on} when nobody gives way (*{}*)?", variant.name);
    let step = step_ns(variant, cell);
    if !is_queue(cell, step) {
        return Finding::unexpected(&question, no_queue(cell, step));
    }
    let last = if variant.is_stopped() { overtaking(cell) } else { computing(cell) };
    Finding::expected(&question, [first_runs(cell, step), completions(cell), waiting(cell), last])
}

/// How much later each next goroutine should begin: a first turn, by as many as there are at once.
///
/// The median is the turn of one that was not stopped; the mean has all that the stopped ones
/// waited for.
fn step_ns(variant: &Variant, cell: &Summary) -> f64 {
    let computing = if variant.is_stopped() { cell.own.p50 } else { cell.own.mean };
    variant.turn_ns(computing) / cell.procs as f64
}

fn is_queue(cell: &Summary, step: f64) -> bool {
    cell.queue.r2 >= R2_MIN && (cell.queue.slope - step).abs() <= SLOPE_OFF_MAX * step
}

fn first_runs(cell: &Summary, step: f64) -> String {
    format!(
        "Because of the queue: the k-th goroutine to run waited {} + {} x k ms (k from 0; least \
         squares over {}, R2 = {:.4}), where a first turn ends every {} ms.",
        ms(cell.queue.offset),
        ms(cell.queue.slope),
        count(cell.goroutines, "goroutine"),
        cell.queue.r2,
        ms(step),
    )
}

fn completions(cell: &Summary) -> String {
    let done = &cell.done;
    let shape = if done.p50 <= MIDDLE_MAX * done.max {
        "So completion times are spread evenly over the whole run"
    } else {
        "Completion times bunch at the end, because most needed more than their first turn"
    };
    format!(
        "{shape}: half of the goroutines had ended after {} ms, 99 of 100 after {} ms and the last \
         after {} ms.",
        ms(done.p50),
        ms(done.p99),
        ms(done.max),
    )
}

fn waiting(cell: &Summary) -> String {
    let Summary { own, done, wait, rest, .. } = cell;
    format!(
        "The last was done {} times as late as one goroutine computes, and waiting for the first \
         turn was {} of all the time between `go` and completion.",
        times(done.max / own.p50),
        percent(wait.mean, wait.mean + own.mean + rest.mean),
    )
}

/// What being stopped changes: the order in which they are done.
fn overtaking(cell: &Summary) -> String {
    let Summary { own, overtaken, goroutines, .. } = cell;
    if *overtaken == 0 {
        return "They were done in the order in which they had begun: nobody was stopped for \
                another one of them."
            .to_owned();
    }
    format!(
        "{overtaken} of {goroutines} were overtaken by one that had begun later: stopped before \
         they were done, they went on behind others, so that computing took up to {} ms by the \
         clock, where the median is {} ms.",
        ms(own.max),
        ms(own.p50),
    )
}

/// Whether the tail comes from computing, too.
fn computing(cell: &Summary) -> String {
    let Summary { own, work_ns, .. } = cell;
    let times = format!(
        "own run times were {} ms at the median and {} ms at p99, for {} ms of work",
        ms(own.p50),
        ms(own.p99),
        ms(*work_ns),
    );
    if own.p50 <= SLOW_MIN * work_ns {
        return format!("Computing itself was not slow: {times}.");
    }
    format!(
        "Each turn was longer than the work, which makes the queue slower but not different: \
         {times}; {}.",
        cpu_time(cell),
    )
}

fn no_queue(cell: &Summary, step: f64) -> [String; 3] {
    [
        format!(
            "A queue was expected, in which the k-th goroutine to run waits about {} x k ms.",
            ms(step),
        ),
        format!(
            "The numbers do not show it: the best line through the first runs has a slope of {} \
             ms and R2 = {:.4}.",
            ms(cell.queue.slope),
            cell.queue.r2,
        ),
        format!(
            "So first runs depended on something else than the place in the queue: goroutines were \
             stopped {} times, or other programs had the CPUs for a part of the time ({}).",
            cell.counts.stops,
            cpu_time(cell),
        ),
    ]
}
