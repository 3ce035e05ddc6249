//! What changes when goroutines give way now and then.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::{count, ms, percent, times};
use crate::variant::{BUSY, YIELDS};

/// How much shorter the median wait for the first turn has to be.
const WAIT_RATIO_MIN: f64 = 2.0;

/// Where the median completion has to be, as a part of the last one.
const BUNCH_MIN: f64 = 0.8;

/// On the fewest processors that both variants ran on.
pub(super) fn finding(cells: &Cells<'_>) -> Option<Finding> {
    let (busy, yields) = cells.pair(BUSY, YIELDS)?;
    let question = format!("What do yields change on {}?", count(busy.procs, "processor"));
    let shorter = busy.wait.p50 >= WAIT_RATIO_MIN * yields.wait.p50;
    let bunched = bunch(yields) >= BUNCH_MIN && bunch(yields) > bunch(busy);
    Some(if shorter && bunched {
        Finding::expected(&question, changed(busy, yields))
    } else {
        Finding::unexpected(&question, unchanged(busy, yields))
    })
}

/// Where the median completion is on the way to the last one.
fn bunch(cell: &Summary) -> f64 {
    if cell.done.max == 0.0 { 0.0 } else { cell.done.p50 / cell.done.max }
}

fn changed(busy: &Summary, yields: &Summary) -> [String; 4] {
    [
        format!(
            "Everybody begins early: the median wait for the first turn is {} ms instead of {} \
             ms, {} times shorter, and the longest {} ms instead of {} ms.",
            ms(yields.wait.p50),
            ms(busy.wait.p50),
            times(busy.wait.p50 / yields.wait.p50.max(1.0)),
            ms(yields.wait.max),
            ms(busy.wait.max),
        ),
        format!(
            "And everybody ends late: goroutines take turns, up to {} were open at once, and \
             completions bunch at the end, with the median at {} ms, {} of the last one's {} ms \
             (without yields at {} ms, {}).",
            yields.open_at_once,
            ms(yields.done.p50),
            percent(yields.done.p50, yields.done.max),
            ms(yields.done.max),
            ms(busy.done.p50),
            percent(busy.done.p50, busy.done.max),
        ),
        format!(
            "The waiting has moved from before the first instruction to between the turns: {} ms \
             on average there, and {} ms before.",
            ms(yields.rest.mean),
            ms(yields.wait.mean),
        ),
        format!(
            "The work is the same ({} ms of CPU time with yields and {} ms without), and the last \
             one is done after {} ms instead of {} ms: taking turns does not make a batch faster, \
             it makes its first answers later.",
            ms(yields.cpu_ns),
            ms(busy.cpu_ns),
            ms(yields.done.max),
            ms(busy.done.max),
        ),
    ]
}

fn unchanged(busy: &Summary, yields: &Summary) -> [String; 2] {
    [
        "Yields were expected to shorten the wait for the first turn, and to let completions \
         bunch at the end."
            .to_owned(),
        format!(
            "The numbers do not show both: the median wait is {} ms with yields and {} ms \
             without, and the median completion is at {} of the last one with yields and at {} \
             without.",
            ms(yields.wait.p50),
            ms(busy.wait.p50),
            percent(yields.done.p50, yields.done.max),
            percent(busy.done.p50, busy.done.max),
        ),
    ]
}
