//! `/debug/sched.json?since=N`: everything that the page shows; without `since` all but what ran lately.
//!
//! Fields may be added; what is there keeps its name and meaning.

use crate::query;
use crate::sampler::{self, Lane, Look, PERIOD, Recent};
use gosched::metrics::{
    self, Activity, Float64Histogram, GoroutineStates, ProcessorState, Sample, Value, snapshot,
};
use gosched::runtime;
use gosched::sync::{Mutex, PoisonError};
use gosched_http::{Request, Response};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Counting goroutines by state takes at most one part of so many of the time.
const COUNTING_SHARE: u32 = 20;

pub(crate) fn answer(req: &Request<'_>) -> Response {
    let since = query::value(req, "since").map(|text| text.parse().unwrap_or(0));
    let now = snapshot();
    let (numbers, times) = all_metrics();
    let state = json!({
        "version": runtime::version(),
        "pid": std::process::id(),
        "us": micros(Instant::now()),
        "cpus": runtime::num_cpu(),
        "goroutines": goroutines(&states(), runtime::num_goroutine()),
        "threads": {
            "total": now.threads,
            "machines": now.machines,
            "idle": now.idle_machines,
            "searching": now.searching_machines,
        },
        "stopping": now.is_stopping,
        "global_queue": now.global_queue,
        "processors": now.processors.iter().map(processor).collect::<Vec<_>>(),
        "metrics": numbers,
        "histograms": times,
        "recent": since.map(|since| sampler::watch(|recent| lanes(recent, since))),
    });
    Response::json(format!("{state}\n")).header("Cache-Control", "no-store")
}

/// When this is asked for the first time; microseconds count from then.
fn micros(at: Instant) -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    at.saturating_duration_since(*FIRST.get_or_init(|| at)).as_micros() as u64
}

fn processor(p: &ProcessorState) -> Json {
    json!({
        "id": p.id,
        "activity": word(p.activity),
        "machine": p.machine,
        "goroutine": p.goroutine,
        "site": p.site.map(|site| site.to_string()),
        "queued": p.queued,
        "timers": p.timers,
        "switches": sampler::switches(p),
        "steals": p.counters.steals + p.counters.next_steals,
    })
}

fn word(activity: Activity) -> &'static str {
    match activity {
        Activity::Idle => "idle",
        Activity::Scheduling => "scheduling",
        Activity::Running => "running",
        Activity::Calling => "calling",
        _ => "other",
    }
}

fn goroutines(states: &GoroutineStates, total: usize) -> Json {
    let by_reason = states.by_reason.iter();
    json!({
        "total": total,
        "runnable": states.runnable,
        "running": states.running,
        "calling": states.calling,
        "waiting": states.waiting,
        "by_reason":
            by_reason.map(|(why, n)| (why.as_str().to_owned(), json!(n))).collect::<Map<_, _>>(),
    })
}

/// Goroutines by state, counted anew unless that took long and was just now.
fn states() -> GoroutineStates {
    struct Counted {
        states: GoroutineStates,
        good_until: Instant,
    }
    static LAST: Mutex<Option<Counted>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = Instant::now();
    if let Some(counted) = last.as_ref().filter(|counted| begin < counted.good_until) {
        return counted.states.clone();
    }
    let states = metrics::goroutine_states();
    let took: Duration = begin.elapsed();
    *last = Some(Counted { states: states.clone(), good_until: begin + took * COUNTING_SHARE });
    states
}

/// Numbers by name, and histograms. Without goroutines by state, which are counted above.
fn all_metrics() -> (Map<String, Json>, Map<String, Json>) {
    let all = metrics::all();
    let names = all.iter().map(|one| one.name).filter(|name| !name.contains("/goroutines/"));
    let mut samples: Vec<_> = names.map(Sample::new).collect();
    metrics::read(&mut samples);
    let (mut numbers, mut times) = (Map::new(), Map::new());
    for Sample { name, value } in samples {
        match value {
            Value::Uint64(n) => drop(numbers.insert(name.into_owned(), json!(n))),
            Value::Float64Histogram(all) => drop(times.insert(name.into_owned(), buckets(&all))),
            _ => {}
        }
    }
    (numbers, times)
}

/// [begin, end, count] of each bucket that has any, in nanoseconds; without an end the last one's is
/// null.
fn buckets(all: &Float64Histogram) -> Json {
    let ns = |seconds: f64| seconds.is_finite().then(|| (seconds * 1e9).round() as u64);
    let bounds = all.buckets.windows(2).map(|ends| (ns(ends[0]), ns(ends[1])));
    let buckets = bounds.zip(&all.counts).filter(|(_, count)| **count > 0);
    buckets.map(|((begin, end), count)| json!([begin, end, count])).collect()
}

/// The looks from number `since` on. A lane is [activity, goroutine, place, switches, queued]; places
/// are numbers in `sites`, -1 for none.
fn lanes(recent: &Recent, since: u64) -> Json {
    let mut sites = Sites::default();
    let mut next = 0;
    let looks = recent.looks.iter().filter(|look| look.number >= since).map(|look| {
        next = look.number + 1;
        json!([micros(look.at), look.lanes.iter().map(|lane| sites.lane(lane)).collect::<Vec<_>>()])
    });
    let looks: Vec<_> = looks.collect();
    if looks.is_empty() {
        next = recent.looks.back().map_or(0, |look: &Look| look.number + 1);
    }
    json!({
        "period_us": PERIOD.as_micros() as u64,
        "next": next,
        "looks": looks,
        "sites": sites.names,
    })
}

/// Places in the code, each once.
#[derive(Default)]
struct Sites {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Sites {
    fn lane(&mut self, lane: &Lane) -> Json {
        let activity = match lane.activity {
            Activity::Idle => 0,
            Activity::Scheduling => 1,
            Activity::Running => 2,
            Activity::Calling => 3,
            _ => 4,
        };
        let site = lane.site.map_or(-1, |site| self.number(site.to_string()) as i64);
        json!([activity, lane.goroutine, site, lane.switches, lane.queued])
    }

    fn number(&mut self, name: String) -> usize {
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() - 1
        })
    }
}
