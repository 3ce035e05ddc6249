//! What two looks at a process say, as text.

use super::look::Look;
use serde_json::Value;
use std::fmt::Write;

/// Processors shown one by one.
const PROCESSORS_MAX: usize = 16;
const REASONS_MAX: usize = 6;

/// Metrics that are shown by the second, in rows.
const RATES: [[(&str, &[&str]); 4]; 3] = [
    [
        (
            "switches",
            &[
                "/sched/switches/direct:switches",
                "/sched/switches/in-place:switches",
                "/sched/switches/scheduled:switches",
            ],
        ),
        ("created", &["/sched/goroutines-created:goroutines"]),
        ("ended", &["/sched/goroutines-ended:goroutines"]),
        ("timers", &["/sched/timers/fired:timers"]),
    ],
    [
        ("steals near", &["/sched/steals/near:steals"]),
        ("far", &["/sched/steals/far:steals"]),
        ("hand-offs", &["/sched/hand-offs/declared:processors"]),
        ("undeclared", &["/sched/hand-offs/undeclared:processors"]),
    ],
    [
        ("preempted", &["/sched/preemptions/cooperative:preemptions"]),
        ("in place", &["/sched/preemptions/in-place:preemptions"]),
        ("frozen", &["/sched/preemptions/frozen:preemptions"]),
        ("polls", &["/sched/polls/passing:polls", "/sched/polls/sleeping:polls"]),
    ],
];

pub(super) fn text(addr: &str, before: &Look<'_>, now: &Look<'_>) -> String {
    let mut out = String::new();
    let us = now.number(&["us"]).saturating_sub(before.number(&["us"])).max(1);
    let by_second = |n: u64| amount(n as f64 * 1e6 / us as f64);
    let line = |out: &mut String, text: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{text}");
    };
    line(
        &mut out,
        format_args!(
            "{}  pid {} at {addr}  GOMAXPROCS {} of {} CPUs",
            now.text("version"),
            now.number(&["pid"]),
            now.processors().len(),
            now.number(&["cpus"]),
        ),
    );
    let state = |name: &str| amount(now.number(&["goroutines", name]) as f64);
    line(
        &mut out,
        format_args!(
            "goroutines {:>8}: {} running, {} runnable, {} in calls, {} waiting",
            state("total"),
            state("running"),
            state("runnable"),
            state("calling"),
            state("waiting"),
        ),
    );
    let reasons = now.reasons();
    if !reasons.is_empty() {
        let shown = reasons.iter().take(REASONS_MAX);
        let words: Vec<_> = shown.map(|(why, n)| format!("{why} {}", amount(*n as f64))).collect();
        line(&mut out, format_args!("  waiting for: {}", words.join(", ")));
    }
    line(
        &mut out,
        format_args!(
            "threads    {:>8}: {} asleep, {} searching",
            now.number(&["threads", "total"]),
            now.number(&["threads", "idle"]),
            now.number(&["threads", "searching"]),
        ),
    );
    let latencies = now.latencies_since(before);
    let quantile = |of_thousand| latencies.quantile(of_thousand).map_or("-".to_owned(), time);
    line(
        &mut out,
        format_args!(
            "latency    {:>8}: p50 {}, p90 {}, p99 {}, p99.9 {}",
            format!("{} seen", amount(latencies.count() as f64)),
            quantile(500),
            quantile(900),
            quantile(990),
            quantile(999),
        ),
    );
    line(&mut out, format_args!(""));
    for row in RATES {
        let cells = row.iter().map(|(label, names)| {
            let grown = |name: &&str| now.metric(name).saturating_sub(before.metric(name));
            format!("{label:>11} {:>7}/s", by_second(names.iter().map(grown).sum()))
        });
        line(&mut out, format_args!("{}", cells.collect::<Vec<_>>().join(" ").trim_end()));
    }
    line(&mut out, format_args!(""));
    processors(&mut out, before, now, us);
    out
}

fn processors(out: &mut String, before: &Look<'_>, now: &Look<'_>, us: u64) {
    let all = now.processors();
    let _ = writeln!(out, "    P  state       M  queue  timers  switches/s  steals/s  goroutine");
    for (p, old) in all.iter().zip(before.processors()).take(PROCESSORS_MAX) {
        let rate = |name: &str| {
            let number = |of: &Value| of[name].as_u64().unwrap_or(0);
            amount(number(p).saturating_sub(number(old)) as f64 * 1e6 / us as f64)
        };
        let number = |name: &str| p[name].as_u64().map_or("-".to_owned(), |n| n.to_string());
        let goroutine = match (p["goroutine"].as_u64(), p["site"].as_str()) {
            (Some(id), Some(site)) => format!("{id} of {site}"),
            (Some(id), None) => id.to_string(),
            _ => String::new(),
        };
        let row = format!(
            "{:>5}  {:<10} {:>2} {:>6} {:>7} {:>11} {:>9}  {goroutine}",
            number("id"),
            p["activity"].as_str().unwrap_or("?"),
            number("machine"),
            number("queued"),
            number("timers"),
            rate("switches"),
            rate("steals"),
        );
        let _ = writeln!(out, "{}", row.trim_end());
    }
    if all.len() > PROCESSORS_MAX {
        let _ = writeln!(out, "       {} more", all.len() - PROCESSORS_MAX);
    }
    let _ = writeln!(out, "  all  {} in the global queue", now.number(&["global_queue"]));
}

/// A number in at most six places.
fn amount(n: f64) -> String {
    match n {
        n if n >= 9_999_500_000.0 => format!("{:.0}G", n / 1e9),
        n if n >= 9_999_500.0 => format!("{:.0}M", n / 1e6),
        n if n >= 99_999.5 => format!("{:.0}k", n / 1e3),
        n if n > 0.0 && n < 9.95 && n.fract() != 0.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        u64::MAX => "longer".to_owned(),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::{amount, time};

    #[test]
    fn amounts_are_short() {
        for (n, text) in [
            (0.0, "0"),
            (0.52, "0.5"),
            (7.0, "7"),
            (99_999.0, "99999"),
            (100_000.0, "100k"),
            (12_345_678.0, "12M"),
            (5e10, "50G"),
        ] {
            assert_eq!(amount(n), text);
        }
    }

    #[test]
    fn times_have_units() {
        for (ns, text) in
            [(64, "64 ns"), (1_500, "1.5 us"), (2_000_000, "2.0 ms"), (u64::MAX, "longer")]
        {
            assert_eq!(time(ns), text);
        }
    }
}
