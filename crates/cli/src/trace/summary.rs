//! What processors and goroutines did with their time, as a table or as JSON.

use gosched_trace_format::{Doing, Generation, Kind, Range, Verified, Watch, Who};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Times in a row, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    count: u64,
    sum: u64,
    longest: u64,
}

impl Times {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum += ns;
        self.longest = self.longest.max(ns);
    }

    fn json(&self) -> Value {
        json!({"count": self.count, "sum_ns": self.sum, "longest_ns": self.longest})
    }
}

/// Goroutines of one function.
#[derive(Default)]
struct Kin {
    goroutines: BTreeSet<u64>,
    runs: Times,
    runnable: Times,
    calls: Times,
    waits: BTreeMap<String, Times>,
}

#[derive(Default)]
struct Processor {
    held: Times,
    busy: u64,
}

#[derive(Default)]
pub(super) struct Summary {
    functions: BTreeMap<String, Kin>,
    processors: BTreeMap<u64, Processor>,
    stops: BTreeMap<String, Times>,
    collections: Times,
    /// Samples of the CPU profiler by the function that they stand in.
    samples: BTreeMap<String, u64>,
}

/// So many functions with the most samples are printed.
const HOTTEST: usize = 10;

impl Watch for Summary {
    fn did(&mut self, who: Who<'_>, what: &Doing, from: u64, to: u64) {
        let took = to - from;
        let kin = self.functions.entry(who.name.to_owned()).or_default();
        kin.goroutines.insert(who.id);
        match what {
            Doing::Runs(p) => {
                kin.runs.add(took);
                self.processors.entry(*p).or_default().busy += took;
            }
            Doing::Runnable => kin.runnable.add(took),
            Doing::Call => kin.calls.add(took),
            Doing::Waits(why) => kin.waits.entry(why.clone()).or_default().add(took),
        }
    }

    fn range(&mut self, range: &Range, from: u64, to: u64) {
        let took = to.saturating_sub(from);
        match range {
            Range::Processor(p) => self.processors.entry(*p).or_default().held.add(took),
            Range::Stopped(why) => self.stops.entry(why.clone()).or_default().add(took),
            Range::Collection => self.collections.add(took),
            Range::Region { .. } => {}
        }
    }

    fn procs(&mut self, _: u64, _: u64) {}
}

impl Summary {
    pub(super) fn count_samples(&mut self, generation: &Generation<'_>) {
        for sample in &generation.samples {
            let frames = generation.stacks.get(&sample.stack);
            let innermost = frames.and_then(|frames| frames.first());
            let function = innermost.map_or("?", |frame| frame.function.as_str());
            *self.samples.entry(function.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn text(&self, verified: &Verified) -> String {
        let mut out = String::new();
        let span = verified.nanoseconds.max(1);
        let events: u64 = verified.events.values().sum();
        let _ = writeln!(
            out,
            "{} s, {} generations, {events} events, {} goroutines",
            seconds(span),
            verified.generations,
            self.functions.values().map(|kin| kin.goroutines.len()).sum::<usize>(),
        );
        let _ =
            writeln!(out, "\nprocessor      busy  goroutine runs for  held by machines for, times");
        for (p, Processor { held, busy }) in &self.processors {
            let share = *busy as f64 * 100.0 / span as f64;
            let (busy, long) = (seconds(*busy), seconds(held.sum));
            let _ = writeln!(
                out,
                "P{p:<8} {share:>8.1} %  {busy:>15} s  {long:>9} s, {:>9}",
                held.count
            );
        }
        let _ = writeln!(out, "\nstops of the world, collections, processors taken from calls");
        for (why, times) in &self.stops {
            let _ = writeln!(out, "  {}", told(why, times));
        }
        let _ = writeln!(out, "  {}", told("collections", &self.collections));
        let _ = writeln!(out, "  processors taken: {}", verified.count(Kind::ProcSteal));
        if !self.samples.is_empty() {
            let mut hottest: Vec<_> = self.samples.iter().collect();
            hottest.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let all: u64 = self.samples.values().sum();
            let _ = writeln!(out, "\nCPU samples: {all}, in");
            for (function, count) in hottest.into_iter().take(HOTTEST) {
                let _ = writeln!(out, "  {count:>8}  {function}");
            }
        }
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by_key(|(_, kin)| std::cmp::Reverse(kin.runs.sum));
        for (name, kin) in functions {
            let _ = writeln!(out, "\n{name}: {} goroutines", kin.goroutines.len());
            for (what, times) in [
                ("runs", &kin.runs),
                ("waits for a processor", &kin.runnable),
                ("calls", &kin.calls),
            ] {
                if times.count > 0 {
                    let _ = writeln!(out, "  {}", told(what, times));
                }
            }
            for (why, times) in &kin.waits {
                let _ = writeln!(out, "  {}", told(&format!("waits: {why}"), times));
            }
        }
        out
    }
}

impl Summary {
    /// As [`text`](Summary::text), times in nanoseconds.
    pub(super) fn json(&self, verified: &Verified) -> Value {
        let functions = self.functions.iter().map(|(name, kin)| {
            let kin = json!({
                "goroutines": kin.goroutines.len(),
                "runs": kin.runs.json(),
                "waits_for_a_processor": kin.runnable.json(),
                "calls": kin.calls.json(),
                "waits": by_name(&kin.waits),
            });
            (name.clone(), kin)
        });
        let processors = self.processors.iter().map(|(p, Processor { held, busy })| {
            (format!("P{p}"), json!({"busy_ns": busy, "held": held.json()}))
        });
        json!({
            "ns": verified.nanoseconds,
            "generations": verified.generations,
            "events": verified.events.values().sum::<u64>(),
            "processors": processors.collect::<Map<_, _>>(),
            "stops_of_the_world": by_name(&self.stops),
            "collections": self.collections.json(),
            "processors_taken": verified.count(Kind::ProcSteal),
            "cpu_samples": self.samples,
            "functions": functions.collect::<Map<_, _>>(),
        })
    }
}

fn by_name(times: &BTreeMap<String, Times>) -> Value {
    times.iter().map(|(name, times)| (name.clone(), times.json())).collect::<Map<_, _>>().into()
}

fn told(what: &str, times: &Times) -> String {
    let mean = times.sum / times.count.max(1);
    let (sum, mean, longest) = (seconds(times.sum), micros(mean), micros(times.longest));
    format!("{what}: {} times, {sum} s, mean {mean} us, longest {longest} us", times.count)
}

fn seconds(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}
