//! Whether a goroutine that blocks its thread takes the processor along.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::{count, ms};
use crate::variant::{BLOCKS, DECLARES};

/// The last one may be this part of the time late that calls one after another would take.
const QUEUE_MAX: f64 = 0.25;

/// One finding for each of the two variants that has numbers.
pub(super) fn findings(cells: &Cells<'_>) -> Vec<Finding> {
    [BLOCKS, DECLARES].iter().filter_map(|variant| finding(variant, &cells.of(variant))).collect()
}

fn finding(variant: &str, cells: &[&Summary]) -> Option<Finding> {
    let first = cells.first()?;
    let question = format!("Does a thread that blocks keep its processor (*{variant}*)?");
    let kept = cells.iter().find(|cell| cell.done.max - cell.work_ns > QUEUE_MAX * queue_ns(cell));
    Some(match kept {
        None => Finding::expected(&question, handed_on(first, cells)),
        Some(cell) => Finding::unexpected(&question, held(cell)),
    })
}

/// How long all calls take one after another on each processor.
fn queue_ns(cell: &Summary) -> f64 {
    cell.work_ns * cell.goroutines as f64 / cell.procs as f64
}

fn hand_offs(cell: &Summary) -> u64 {
    cell.counts.declared_hand_offs + cell.counts.undeclared_hand_offs
}

fn handed_on(first: &Summary, cells: &[&Summary]) -> [String; 3] {
    let each = cells
        .iter()
        .map(|cell| format!("{} ms on {}", ms(cell.done.max), count(cell.procs, "processor")));
    [
        format!(
            "No: all {} were done after {}, each after a call of {} ms.",
            count(first.goroutines, "goroutine"),
            each.collect::<Vec<_>>().join(", "),
            ms(first.work_ns),
        ),
        format!(
            "If each kept its processor, {} would take {} ms; but the processor was taken from a \
             blocked thread {} times and given to another one, and up to {} were in their call at \
             once.",
            count(first.procs, "processor"),
            ms(queue_ns(first)),
            hand_offs(first),
            count(first.open_at_once, "goroutine"),
        ),
        format!(
            "That has a price, the time until it is taken and the other thread runs: one begins \
             every {} ms (least squares, R2 = {:.4}), where sleeping goroutines need no thread.",
            ms(first.queue.slope),
            first.queue.r2,
        ),
    ]
}

fn held(cell: &Summary) -> [String; 2] {
    [
        format!(
            "It was expected not to, and the numbers do not show it: the last one was done after \
             {} ms on {}, where calls one after another take {} ms.",
            ms(cell.done.max),
            count(cell.procs, "processor"),
            ms(queue_ns(cell)),
        ),
        format!(
            "Processors were taken from blocked threads {} times, and at most {} were in their \
             call at once.",
            hand_offs(cell),
            count(cell.open_at_once, "goroutine"),
        ),
    ]
}
