//! A trace in Chrome's format: one JSON object with a list of events.

use gosched_trace_format::{Doing, Range, Watch, Who};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Groups of rows in the viewer.
const PROCESSORS: u64 = 1;
const CALLS: u64 = 2;
const RANGES: u64 = 3;
const REGIONS: u64 = 4;

pub(super) struct Chrome<W: Write> {
    out: W,
    result: io::Result<()>,
    is_first: bool,
    processors: BTreeSet<u64>,
}

impl<W: Write> Chrome<W> {
    pub(super) fn begin(mut out: W) -> Chrome<W> {
        let result = out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        Chrome { out, result, is_first: true, processors: BTreeSet::new() }
    }

    fn put(&mut self, event: &Value) {
        if self.result.is_ok() {
            let comma = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
            self.result = write!(self.out, "{comma}{event}");
        }
    }

    fn slice(&mut self, group: u64, row: u64, name: &str, from: u64, to: u64) {
        self.put(&json!({
            "ph": "X", "pid": group, "tid": row, "name": name,
            "ts": from as f64 / 1e3, "dur": to.saturating_sub(from) as f64 / 1e3,
        }));
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        for (group, name) in [
            (PROCESSORS, "processors"),
            (CALLS, "calls, by goroutine"),
            (RANGES, "stops and collections"),
            (REGIONS, "regions, by goroutine"),
        ] {
            self.put(&json!({
                "ph": "M", "pid": group, "name": "process_name", "args": {"name": name},
            }));
        }
        for p in std::mem::take(&mut self.processors) {
            let name = format!("P{p}");
            self.put(&json!({
                "ph": "M", "pid": PROCESSORS, "tid": p, "name": "thread_name",
                "args": {"name": name},
            }));
        }
        self.result?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

impl<W: Write> Watch for Chrome<W> {
    fn did(&mut self, who: Who<'_>, what: &Doing, from: u64, to: u64) {
        let name = format!("{} {}", who.name, who.id);
        match what {
            Doing::Runs(p) => {
                self.processors.insert(*p);
                self.slice(PROCESSORS, *p, &name, from, to);
            }
            Doing::Call => self.slice(CALLS, who.id, &name, from, to),
            Doing::Runnable | Doing::Waits(_) => {}
        }
    }

    fn range(&mut self, range: &Range, from: u64, to: u64) {
        match range {
            Range::Processor(_) => {}
            Range::Stopped(why) => {
                self.slice(RANGES, 1, &format!("stop-the-world ({why})"), from, to);
            }
            Range::Collection => self.slice(RANGES, 2, "collection", from, to),
            Range::Region { goroutine, name } => self.slice(REGIONS, *goroutine, name, from, to),
        }
    }

    fn procs(&mut self, at: u64, procs: u64) {
        self.put(&json!({
            "ph": "C", "pid": RANGES, "name": "GOMAXPROCS", "ts": at as f64 / 1e3,
            "args": {"procs": procs},
        }));
    }
}
