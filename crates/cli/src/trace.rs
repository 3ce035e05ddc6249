//! `gosched trace`.

mod chrome;
mod summary;

use crate::args::{TraceAct, TraceArgs, TraceFile, TraceReport};
use crate::outcome::{Failed, ended, print};
use gosched_trace_format::{Timeline, Trace, Verified, Watch, verify};
use serde_json::json;
use std::fs;
use std::io::{self, BufWriter};
use std::process::ExitCode;

pub(crate) fn run(args: &TraceArgs) -> ExitCode {
    let result = match &args.act {
        TraceAct::Check(report) => check(report),
        TraceAct::Summary(report) => summary(report),
        TraceAct::Chrome(file) => chrome(file),
    };
    ended("trace", result)
}

fn read(file: &TraceFile) -> Result<Vec<u8>, Failed> {
    let path = file.file.display();
    fs::read(&file.file).map_err(|error| format!("can't read {path}: {error}"))
}

fn summary(report: &TraceReport) -> Result<(), Failed> {
    let mut summary = summary::Summary::default();
    let bytes = read(&report.file)?;
    let verified = follow(&bytes, &mut summary)?;
    for generation in Trace::read(&bytes).map_err(|damaged| damaged.to_string())?.generations {
        summary.count_samples(&generation);
    }
    match report.json {
        true => print(format!("{}\n", summary.json(&verified))),
        false => print(summary.text(&verified)),
    }
}

fn check(report: &TraceReport) -> Result<(), Failed> {
    let verified = verify(&read(&report.file)?, |_, _| {}).map_err(|fault| fault.to_string())?;
    let events: u64 = verified.events.values().sum();
    if report.json {
        let json = json!({
            "generations": verified.generations,
            "events": events,
            "ns": verified.nanoseconds,
            "most_running": verified.most_running,
            "cpu_samples": verified.samples,
        });
        return print(format!("{json}\n"));
    }
    let samples = match verified.samples {
        0 => String::new(),
        n => format!(", {n} CPU samples"),
    };
    print(format!(
        "right: {} generations, {events} events in {:.3} s, at most {} processors ran at once{samples}\n",
        verified.generations,
        verified.nanoseconds as f64 / 1e9,
        verified.most_running,
    ))
}

/// Follows the trace; the intervals in it go to `watch`.
fn follow(bytes: &[u8], watch: &mut impl Watch) -> Result<Verified, Failed> {
    let mut timeline = Timeline::default();
    let verified = verify(bytes, |generation, seen| timeline.see(generation, seen, watch))
        .map_err(|fault| fault.to_string())?;
    timeline.end(watch);
    Ok(verified)
}

fn chrome(file: &TraceFile) -> Result<(), Failed> {
    let mut out = chrome::Chrome::begin(BufWriter::new(io::stdout().lock()));
    let followed = read(file).and_then(|bytes| follow(&bytes, &mut out));
    let written = out.end().map_err(|error| format!("can't print: {error}"));
    followed.and(written)
}
