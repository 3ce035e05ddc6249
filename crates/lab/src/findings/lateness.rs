//! How late a goroutine wakes that sleeps beside the others.

use super::{Cells, Finding, cpu_time};
use crate::probe::PERIOD;
use crate::summary::Summary;
use crate::text::{count, ms, times};
use crate::variant::{Body, Runner, VARIANTS, Variant};

/// What a woken sleeper waits for, nine times of ten that it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lateness {
    /// Next to nothing.
    Prompt,
    /// The end of what is running.
    OneTurn,
    /// More than that: others that are not running yet.
    ManyTurns,
}

/// How many turns may pass as one.
const ONE_TURN_MAX: f64 = 3.0;

/// One finding for each variant with goroutines that has numbers.
pub(super) fn findings(cells: &Cells<'_>) -> Vec<Finding> {
    let goroutines = VARIANTS.iter().filter(|variant| variant.runner == Runner::Goroutines);
    goroutines.filter_map(|variant| finding(variant, &cells.of(variant.name))).collect()
}

fn finding(variant: &Variant, cells: &[&Summary]) -> Option<Finding> {
    let worst = cells.iter().map(|cell| lateness(variant, cell)).max()?;
    let question = format!("How late does a sleeper wake beside *{}*?", variant.name);
    let answer = [figures(variant, cells), explanation(worst, variant, cells)];
    Some(if worst == usual(variant) {
        Finding::expected(&question, answer)
    } else {
        Finding::unexpected(&question, answer)
    })
}

/// What theory has for `variant`.
fn usual(variant: &Variant) -> Lateness {
    match variant.body {
        Body::Compute if !variant.is_stopped() => Lateness::OneTurn,
        Body::Compute
        | Body::ComputeAndYield(_)
        | Body::Sleep
        | Body::Block
        | Body::BlockDeclared => Lateness::Prompt,
    }
}

fn lateness(variant: &Variant, cell: &Summary) -> Lateness {
    let late = cell.late_any_time.p90;
    if late <= prompt_max(cell) {
        Lateness::Prompt
    } else if late <= ONE_TURN_MAX * variant.turn_ns(cell.turn.p90) {
        Lateness::OneTurn
    } else {
        Lateness::ManyTurns
    }
}

/// A tenth of the work, and no less than the probe's own period or what the machine needs anyway.
fn prompt_max(cell: &Summary) -> f64 {
    (cell.work_ns / 10.0).max(PERIOD.as_nanos() as f64).max(cell.alone.p99)
}

fn figures(variant: &Variant, cells: &[&Summary]) -> String {
    let each = cells.iter().map(|cell| {
        let late = &cell.late_any_time;
        format!(
            "{} ms at the median, {} ms at p90 and {} ms at most on {} (alone {} ms; {})",
            ms(late.p50),
            ms(late.p90),
            ms(late.max),
            count(cell.procs, variant.on()),
            ms(cell.alone.p50),
            count(cell.probe_samples, "sleep"),
        )
    });
    let each = each.collect::<Vec<_>>().join("; ");
    format!("Whoever is due at any time was late by {each}.")
}

fn explanation(worst: Lateness, variant: &Variant, cells: &[&Summary]) -> String {
    match (worst, variant.body) {
        (Lateness::Prompt, Body::Compute) => stopped_for_it(cells),
        (Lateness::Prompt, _) => {
            "A goroutine that gives way often, or waits, does not make others late.".to_owned()
        }
        (Lateness::OneTurn, _) => one_turn(variant, cells),
        (Lateness::ManyTurns, Body::Compute | Body::ComputeAndYield(_)) => {
            many_turns(variant, cells)
        }
        (Lateness::ManyTurns, _) => burst(cells),
    }
}

fn stopped_for_it(cells: &[&Summary]) -> String {
    let (stops, sleeps) = stops_and_sleeps(cells);
    format!(
        "It does not wait until a computing goroutine is done, so the goroutine is stopped for it: \
         goroutines were stopped {stops} times while it slept {sleeps} times.",
    )
}

fn one_turn(variant: &Variant, cells: &[&Summary]) -> String {
    if usual(variant) == Lateness::OneTurn {
        return "It becomes runnable while others compute, and runs when one of them ends its \
                turn: as late as the turn is long."
            .to_owned();
    }
    let (stops, sleeps) = stops_and_sleeps(cells);
    let latest = cells.iter().max_by(|a, b| a.late_any_time.p90.total_cmp(&b.late_any_time.p90));
    let cpu_time = latest.map_or_else(String::new, |cell| cpu_time(cell));
    let reason = if 2 * stops < sleeps {
        "so it often waited until one ended its turn"
    } else {
        "so they were stopped for it, but late: who stops them needs a CPU, too"
    };
    format!(
        "It was expected to be prompt, because who computes is stopped for it; goroutines were \
         stopped {stops} times while it slept {sleeps} times, {reason} ({cpu_time}).",
    )
}

fn stops_and_sleeps(cells: &[&Summary]) -> (u64, u64) {
    let stops = cells.iter().map(|cell| cell.counts.stops).sum();
    (stops, cells.iter().map(|cell| cell.probe_samples as u64).sum())
}

/// Where nobody computes, only the start and the common end of all sleeps can be in the way.
fn burst(cells: &[&Summary]) -> String {
    let latest = cells.iter().max_by(|a, b| a.late_any_time.p90.total_cmp(&b.late_any_time.p90));
    latest.map_or_else(String::new, |cell| {
        format!(
            "It was expected to wake promptly, since nobody computes, and did not on {}: {} begin \
             and wake within {} ms there, and the machine itself made it wait for {} ms when it \
             was alone.",
            count(cell.procs, "processor"),
            count(cell.goroutines, "goroutine"),
            ms(cell.elapsed_ns),
            ms(cell.alone.max),
        )
    })
}

/// From the cell where it waited for the most turns.
fn many_turns(variant: &Variant, cells: &[&Summary]) -> String {
    let turn = |cell: &Summary| variant.turn_ns(cell.turn.p50);
    let turns = |cell: &Summary| cell.late_any_time.p90 / turn(cell).max(1.0);
    let worst = cells.iter().filter(|cell| lateness(variant, cell) == Lateness::ManyTurns);
    let Some(worst) = worst.max_by(|a, b| turns(a).total_cmp(&turns(b))) else {
        return String::new();
    };
    let turns = turns(worst);
    let everybody = worst.goroutines as f64 / worst.procs as f64;
    let queue = if (everybody / 2.0..=everybody * 2.0).contains(&turns) {
        " That is about as many as the others have among them, so it waited for everybody."
    } else {
        ""
    };
    let expected = match usual(variant) {
        Lateness::Prompt => "next to nothing",
        _ => "one turn at most",
    };
    format!(
        "It was expected to wait for {expected}, and waited for more: on {} p90 is {} times \
         a turn of {} ms.{queue} {} There, {}.",
        count(worst.procs, "processor"),
        times(turns),
        ms(turn(worst)),
        looks(worst),
        cpu_time(worst),
    )
}

/// How often there was an occasion to notice that the probe's time had come, and how often one was
/// made.
fn looks(cell: &Summary) -> String {
    format!(
        "Timers are looked at by the monitor and in the scheduler's loop, which found a goroutine {} times there, \
         while {} times one followed another without it; goroutines were stopped {} times.",
        cell.counts.scheduled,
        cell.counts.direct_switches + cell.counts.runs_in_place,
        cell.counts.stops,
    )
}
