//! What the traces say, and what taking them costs.

use super::{Cells, Finding};
use crate::stats::Quantiles;
use crate::text::{count, ms};
use crate::traced::{Span, Traced};
use crate::variant::{self, Body};

/// How much more CPU time the repetitions may take, as a part of that without a trace.
const COST_MAX: f64 = 0.1;

/// From all repetitions in which goroutines compute: where they wait there is no CPU time to compare.
pub(super) fn cost(cells: &Cells<'_>, traces: &[Traced]) -> Option<Finding> {
    let pairs: Vec<_> = traces
        .iter()
        .filter(|traced| computes(&traced.variant))
        .filter_map(|traced| Some((traced, cells.on(&traced.variant, traced.procs)?)))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let with: f64 = pairs.iter().map(|(traced, _)| traced.cpu_ns as f64).sum();
    let without: f64 = pairs.iter().map(|(_, cell)| cell.cpu_ns).sum();
    let events: u64 = pairs.iter().map(|(traced, _)| traced.events).sum();
    let figures = format!(
        "{} took {} ms of CPU time with a trace and {} ms without ({:+.1} %), with {events} \
         events in {:.1} MB of traces.",
        count(pairs.len(), "cell"),
        ms(with),
        ms(without),
        100.0 * (with / without.max(1.0) - 1.0),
        pairs.iter().map(|(traced, _)| traced.bytes).sum::<u64>() as f64 / 1e6,
    );
    let apart = "No other number of this report was measured with a trace: the traces are of \
                 repetitions, in processes of their own."
        .to_owned();
    let question = "What does it cost to take the traces?";
    Some(if with <= (1.0 + COST_MAX) * without {
        Finding::expected(question, [figures, apart])
    } else {
        let most = format!(
            "It was expected to be {:.0} % at most, and is more; other programs on the CPUs make \
             computing slower, too.",
            100.0 * COST_MAX
        );
        Finding::unexpected(question, [figures, most, apart])
    })
}

fn computes(name: &str) -> bool {
    let body = variant::find(name).map(|variant| variant.body);
    matches!(body, Some(Body::Compute | Body::ComputeAndYield(_)))
}

/// What one trace says.
pub(super) fn finding(cells: &Cells<'_>, traced: &Traced) -> Finding {
    let on = count(traced.procs, "processor");
    let question = format!("What does the trace of *{}* on {on} show?", traced.variant);
    let answer = [
        processors(traced),
        transitions(traced),
        given_up(traced),
        ranges(traced),
        sleeper(cells, traced),
    ];
    let mut finding = Finding::expected(&question, answer);
    if let Err(other) = expectation(traced) {
        finding.as_expected = false;
        finding.answer.push(other);
    }
    finding.is_about_a_trace = true;
    finding
}

fn processors(traced: &Traced) -> String {
    let each = traced.processors.iter().map(|processor| {
        let mut kinds: Vec<_> = processor.events.iter().collect();
        kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
        let kinds: Vec<_> =
            kinds.iter().take(4).map(|(name, count)| format!("{count} {name}")).collect();
        let total = processor.total();
        match processor.p {
            Some(p) => format!(
                "P{p} has {total} of them ({}) and ran goroutines for {:.1} % of the time",
                kinds.join(", "),
                100.0 * processor.busy_ns as f64 / traced.span_ns.max(1) as f64,
            ),
            None => format!("{total} come from threads without a P ({})", kinds.join(", ")),
        }
    });
    format!(
        "`{}` has {} events in {} of {} ms: {}.",
        traced.file,
        traced.events,
        count(traced.generations, "generation"),
        ms(traced.span_ns as f64),
        each.collect::<Vec<_>>().join("; "),
    )
}

fn transitions(traced: &Traced) -> String {
    format!(
        "Threads took a P {} times (ProcStart) and gave it up {} times (ProcStop); it was taken \
         from one in a system call {} times (ProcSteal).",
        traced.count("ProcStart"),
        traced.count("ProcStop"),
        traced.count("ProcSteal"),
    )
}

fn given_up(traced: &Traced) -> String {
    if traced.given_up.is_empty() {
        return "No goroutine gave up its P that could have gone on (GoStop).".to_owned();
    }
    let each = traced.given_up.iter().map(|(why, times)| format!("\"{why}\" {times} times"));
    format!(
        "Goroutines that could have gone on gave up their P (GoStop) as {}.",
        each.collect::<Vec<_>>().join(", ")
    )
}

fn ranges(traced: &Traced) -> String {
    let stops = spans(&traced.stops, "stop of the world", "stops of the world");
    let collections = spans(&traced.collections, "GC range", "GC ranges");
    format!(
        "It has {stops} and {collections}: what the end of the repetition asks for with \
         `runtime::gc()`; the work itself needs none."
    )
}

fn spans(spans: &[Span], one: &str, more: &str) -> String {
    let each = spans.iter().map(|span| {
        let (from, took) = (ms(span.from_ns as f64), ms(span.took_ns as f64));
        format!("{} at {from} ms for {took} ms", span.what)
    });
    let each = each.collect::<Vec<_>>().join(", ");
    match spans.len() {
        0 => format!("no {one}"),
        1 => format!("1 {one} ({each})"),
        many => format!("{many} {more} ({each})"),
    }
}

/// The probe's lateness, once by its own clock and once by the trace.
fn sleeper(cells: &Cells<'_>, traced: &Traced) -> String {
    let late = Quantiles::of(traced.late_ns());
    let ready = Quantiles::of(traced.ready_late_ns());
    let own = cells.on(&traced.variant, traced.procs).map_or_else(String::new, |cell| {
        format!(" (the cell without a trace measured {} ms by itself)", ms(cell.late.p50))
    });
    format!(
        "The probe slept {} times in it and ran {} ms late at the median{own} and {} ms at most, \
         of which it was {} ms and {} ms until somebody saw that its time had come (GoUnblock) and \
         the rest until it had a P (GoStart).",
        traced.sleeps.len(),
        ms(late.p50),
        ms(late.max),
        ms(ready.p50),
        ms(ready.max),
    )
}

/// Whether the trace has what the variant is made for; otherwise what it has instead.
fn expectation(traced: &Traced) -> Result<(), String> {
    let times = |why: &str| traced.given_up.get(why).copied().unwrap_or(0);
    let most = traced.most_running;
    if most > traced.procs {
        return Err(format!(
            "{most} Ps ran at once, where {} were expected at most.",
            traced.procs
        ));
    }
    let many = traced.goroutines as u64;
    match traced.variant.as_str() {
        variant::BUSY if times(PREEMPTED) == 0 => {
            Err("Goroutines were expected to be preempted, and none was.".to_owned())
        }
        variant::UNSTOPPED if times(PREEMPTED) >= many => Err(format!(
            "Nobody was expected to be preempted who computes, and it happened {} times among \
             {many} goroutines.",
            times(PREEMPTED)
        )),
        variant::YIELDS if times(YIELDED) < many => Err(format!(
            "Each of {many} goroutines was expected to yield, and they did {} times.",
            times(YIELDED)
        )),
        variant::BLOCKS | variant::DECLARES if traced.count("GoSyscallBegin") == 0 => {
            Err("System calls were expected, and it has none.".to_owned())
        }
        _ => Ok(()),
    }
}

/// What the trace calls a goroutine that was stopped, and one that gave way.
const PREEMPTED: &str = "preempted";
const YIELDED: &str = "runtime.Gosched";
