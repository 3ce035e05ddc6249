//! What threads and a pool of threads make of the same work.

use super::{Cells, Finding};
use crate::summary::Summary;
use crate::text::{count, ms, percent, times};
use crate::variant::{BUSY, POOL, THREADS};

/// Where the median completion has to be, as a part of the last one, if all take turns.
const BUNCH_MIN: f64 = 0.65;

/// From where on a sleeper waits for everybody, as a part of the last completion.
const EVERYBODY_MIN: f64 = 0.25;

/// On the fewest CPUs on which both threads and goroutines ran.
pub(super) fn threads(cells: &Cells<'_>) -> Option<Finding> {
    let (busy, threads) = cells.pair(BUSY, THREADS)?;
    let on = count(threads.procs, "CPU");
    let question = format!("What do operating system threads do with the same work on {on}?");
    let take_turns = threads.done.p50 >= BUNCH_MIN * threads.done.max;
    let cost = threads_cost(busy, threads);
    Some(if take_turns {
        let turns = format!(
            "The kernel lets all of them take turns: half were done only after {} ms, {} of the \
             last one's {} ms, and up to {} were open at once.",
            ms(threads.done.p50),
            percent(threads.done.p50, threads.done.max),
            ms(threads.done.max),
            threads.open_at_once,
        );
        Finding::expected(&question, [turns, cost])
    } else {
        let other = format!(
            "The kernel was expected to let all of them take turns, so that completions bunch at \
             the end, and the numbers do not show it: half were done after {} ms, {} of the last \
             one's {} ms.",
            ms(threads.done.p50),
            percent(threads.done.p50, threads.done.max),
            ms(threads.done.max),
        );
        Finding::unexpected(&question, [other, cost])
    })
}

fn threads_cost(busy: &Summary, threads: &Summary) -> String {
    format!(
        "A thread that sleeps beside them was late by {} ms at the median and {} ms at p99, where \
         a goroutine beside goroutines was late by {} ms and {} ms; the process had up to {} MB \
         resident, with goroutines {} MB.",
        ms(threads.late_any_time.p50),
        ms(threads.late_any_time.p99),
        ms(busy.late_any_time.p50),
        ms(busy.late_any_time.p99),
        megabytes(threads),
        megabytes(busy),
    )
}

fn megabytes(cell: &Summary) -> String {
    format!("{:.1}", cell.peak_rss_bytes as f64 / 1e6)
}

/// On the fewest threads.
pub(super) fn pool(cells: &Cells<'_>) -> Option<Finding> {
    let pool = *cells.of(POOL).first()?;
    let question = format!("What does a pool of {} do?", count(pool.procs, "thread"));
    let waits_for_all = pool.late_any_time.p50 >= EVERYBODY_MIN * pool.done.max;
    let figures = format!(
        "A job that is due every ms ran {} ms late at the median and {} ms at p99, where all the \
         work took {} ms.",
        ms(pool.late_any_time.p50),
        ms(pool.late_any_time.p99),
        ms(pool.done.max),
    );
    Some(if waits_for_all {
        let why = format!(
            "It is one more job in the queue, and nothing makes room for it: a pool runs each job \
             from beginning to end, in the order in which they came (slope {} ms, R2 = {:.4}).",
            ms(pool.queue.slope),
            pool.queue.r2,
        );
        Finding::expected(&question, [figures, why])
    } else {
        let why = format!(
            "It was expected to wait behind everybody, for {} of that time at least, and did not: \
             it waited for {} times what one job computes.",
            percent(EVERYBODY_MIN, 1.0),
            times(pool.late_any_time.p50 / pool.own.p50.max(1.0)),
        );
        Finding::unexpected(&question, [figures, why])
    })
}
