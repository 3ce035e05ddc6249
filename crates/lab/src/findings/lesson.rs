//! The tail that the experiment is about: how late a sleeper is with and without preemption.

use super::{Cells, Finding, cpu_time};
use crate::summary::Summary;
use crate::text::{count, ms, times};
use crate::variant::{BUSY, UNSTOPPED, YIELDS};

/// How much later the median has to be when nothing stops who computes.
const LATER_MIN: f64 = 2.0;

/// On the fewest processors that all three variants ran on.
pub(super) fn finding(cells: &Cells<'_>) -> Option<Finding> {
    let (unstopped, yields) = cells.pair(UNSTOPPED, YIELDS)?;
    let busy = cells.on(BUSY, unstopped.procs)?;
    let on = count(unstopped.procs, "processor");
    let question = format!(
        "How late is a sleeper on {on} without preemption, with yields, and with preemption?"
    );
    let figures = figures(unstopped, yields, busy);
    let later = |other: &Summary| median(unstopped) >= LATER_MIN * median(other);
    Some(match (later(yields), later(busy)) {
        (true, true) => Finding::expected(&question, [figures, lesson(unstopped, yields, busy)]),
        (yields_help, stops_help) => {
            let missing = missing(yields_help, stops_help);
            Finding::unexpected(&question, [figures, missing, reasons(unstopped, yields, busy)])
        }
    })
}

fn median(cell: &Summary) -> f64 {
    cell.late_any_time.p50
}

fn figures(unstopped: &Summary, yields: &Summary, busy: &Summary) -> String {
    let figure = |cell: &Summary| {
        let late = &cell.late_any_time;
        format!("{} ms at the median and {} ms at p99", ms(late.p50), ms(late.p99))
    };
    format!(
        "Without preemption (*unstopped*) it is {}; with yields (*yields*) {}; with preemption \
         (*busy*) {}.",
        figure(unstopped),
        figure(yields),
        figure(busy),
    )
}

fn lesson(unstopped: &Summary, yields: &Summary, busy: &Summary) -> String {
    let ratio = |other: &Summary| times(median(unstopped) / median(other).max(1.0));
    format!(
        "The work is the same, and completion times alone would not show it: without preemption \
         the last one was done after {} ms and with it after {} ms. The sleeper shows it: it is \
         {} times as late as with preemption and {} times as late as with yields, because it can \
         go on only when somebody ends a turn.",
        ms(unstopped.done.max),
        ms(busy.done.max),
        ratio(busy),
        ratio(yields),
    )
}

fn missing(yields_help: bool, stops_help: bool) -> String {
    let what = match (yields_help, stops_help) {
        (false, false) => "neither yields nor preemption made it",
        (false, true) => "yields did not make it",
        _ => "preemption did not make it",
    };
    format!("Both were expected to make it {LATER_MIN:.0} times less late at least, and {what} so.")
}

fn reasons(unstopped: &Summary, yields: &Summary, busy: &Summary) -> String {
    format!(
        "Whether it had the occasion: goroutines were stopped {} times in *busy* and {} times in \
         *unstopped*; in *busy* {}, in *yields* {}.",
        busy.counts.stops,
        unstopped.counts.stops,
        cpu_time(busy),
        cpu_time(yields),
    )
}
