//! All metrics as text for Prometheus, format 0.0.4.

use super::reading::Reading;
use super::table::{Get, METRICS, Metric};
use gosched_sched::{Durations, ProcessorState};
use std::fmt::{self, Write};

/// Histograms have a bucket for each power of two from here ...
const FIRST_END_NS: u64 = 64;
/// ... to here: 17 s.
const LAST_END_NS: u64 = 1 << 34;

/// Writes every metric in the text format of Prometheus, version 0.0.4.
///
/// Names are made of ours as the Go collector makes its own of Go's: `/sched/latencies:seconds` is
/// `gosched_sched_latencies_seconds`, and what only grows ends in `_total`. Besides there are, with
/// labels: goroutines by state and by what they wait for, and each processor's counts.
///
/// ```
/// let mut text = String::new();
/// gosched::metrics::prometheus(&mut text).unwrap();
/// assert!(text.contains("\ngosched_sched_goroutines_goroutines "));
/// ```
///
/// # Errors
/// What `out` returns.
pub fn prometheus(out: &mut impl Write) -> fmt::Result {
    let reading = Reading::new();
    for metric in METRICS {
        one(out, metric, &reading)?;
    }
    by_state(out, &reading)?;
    by_processor(out, &reading)
}

fn one(out: &mut impl Write, metric: &Metric, reading: &Reading) -> fmt::Result {
    let mut name = name_of(metric.description.name);
    let kind = match metric.get {
        Get::Times(_) => "histogram",
        Get::Number(_) if metric.description.cumulative => {
            name.push_str("_total");
            "counter"
        }
        Get::Number(_) => "gauge",
    };
    head(out, &name, metric.description.description, kind)?;
    match metric.get {
        Get::Number(get) => writeln!(out, "{name} {}", get(reading)),
        Get::Times(get) => histogram(out, &name, &get(reading)),
    }
}

fn head(out: &mut impl Write, name: &str, description: &str, kind: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {description}")?;
    writeln!(out, "# TYPE {name} {kind}")
}

fn name_of(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    std::iter::once("gosched").flat_map(str::chars).chain(name.chars().map(word)).collect()
}

fn histogram(out: &mut impl Write, name: &str, durations: &Durations) -> fmt::Result {
    let mut so_far = 0;
    for (count, end) in durations.counts.iter().zip(&durations.ends_ns) {
        so_far += count;
        if end.is_power_of_two() && (FIRST_END_NS..=LAST_END_NS).contains(end) {
            writeln!(out, "{name}_bucket{{le=\"{}\"}} {so_far}", seconds(*end))?;
        }
    }
    writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {so_far}")?;
    writeln!(out, "{name}_sum {}", seconds(durations.sum_ns))?;
    writeln!(out, "{name}_count {so_far}")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn by_state(out: &mut impl Write, reading: &Reading) -> fmt::Result {
    let states = reading.states();
    let name = "gosched_goroutines";
    head(out, name, "Goroutines by state.", "gauge")?;
    for (state, count) in [
        ("runnable", states.runnable),
        ("running", states.running),
        ("syscall", states.calling),
        ("waiting", states.waiting),
    ] {
        writeln!(out, "{name}{{state=\"{state}\"}} {count}")?;
    }
    let name = "gosched_goroutines_waiting";
    head(out, name, "Waiting goroutines by what they wait for, in the words of dumps.", "gauge")?;
    for (reason, count) in &states.by_reason {
        writeln!(out, "{name}{{reason=\"{}\"}} {count}", reason.as_str())?;
    }
    Ok(())
}

/// Name, description, whether it only grows, number.
type OfProcessor = (&'static str, &'static str, bool, fn(&ProcessorState) -> u64);

const OF_PROCESSORS: &[OfProcessor] = &[
    ("queued_goroutines", "Goroutines in the processor's queue.", false, |p| p.queued as u64),
    ("armed_timers", "Timers that the processor looks after.", false, |p| p.timers as u64),
    ("switches_total", "Goroutines that began to run on the processor.", true, |p| {
        let c = &p.counters;
        c.direct_switches + c.scheduled + c.runs_in_place
    }),
    ("created_goroutines_total", "Goroutines made on the processor.", true, |p| p.counters.created),
    ("steals_total", "Steals by the processor.", true, |p| {
        p.counters.steals + p.counters.next_steals
    }),
    ("overflows_total", "Overflows of the processor's queue.", true, |p| p.counters.overflows),
    ("fired_timers_total", "Timers that fired on the processor.", true, |p| p.counters.timers),
];

fn by_processor(out: &mut impl Write, reading: &Reading) -> fmt::Result {
    let name = "gosched_processor_is_held";
    head(out, name, "Whether a thread holds the processor.", "gauge")?;
    for p in &reading.snapshot().processors {
        writeln!(out, "{name}{{processor=\"{}\"}} {}", p.id, u8::from(p.machine.is_some()))?;
    }
    for (name, description, cumulative, get) in OF_PROCESSORS {
        let name = format!("gosched_processor_{name}");
        head(out, &name, description, if *cumulative { "counter" } else { "gauge" })?;
        for p in &reading.snapshot().processors {
            writeln!(out, "{name}{{processor=\"{}\"}} {}", p.id, get(p))?;
        }
    }
    Ok(())
}
