//! `scaling`: what a spawn, a switch, a park with its wake-up, and work that has to be stolen cost
//! as goroutines and processors grow.
//!
//! Costs are wall time by operation, so with more CPUs at work they fall below what one CPU
//! needs. Only `steal_ns` is a difference: what is left of the wall time of a task when its work,
//! split evenly over the CPUs, is taken off.
//!
//! Prints a table while it goes; the line of JSON has the same as `points`.

use super::Outcome;
use crate::args::Args;
use crate::process::available_bytes;
use crate::report::{Report, ns_per};
use crate::run::say;
use crate::tasks::{join, spawn};
use crate::work::{calibrate, spin};
use gosched::runtime::gomaxprocs;
use gosched::thread::{JoinHandle, Thread, current, park, yield_now};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// At least so many operations make a figure.
const OPS: u64 = 200_000;

/// What a goroutine may take, so that a small machine leaves the large sizes out.
const BYTES_EACH: u64 = 12 << 10;

/// How long a task works that is there to be stolen.
const STOLEN_WORK: Duration = Duration::from_micros(2);

pub(crate) fn run(args: &Args) -> Outcome {
    let largest = args.get("max", 1_000_000)?.min(available_bytes() / BYTES_EACH);
    let procs_max = args.get("max_procs", 64)?;
    let work = Work::new();
    say(format_args!(
        "{:>5} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "procs", "goroutines", "spawn_ns", "switch_ns", "park_ns", "steal_ns"
    ));
    let before = gomaxprocs(0);
    let start = Instant::now();
    let mut points = Vec::new();
    for procs in steps(1, 2, procs_max as u64) {
        gomaxprocs(procs as usize);
        for n in steps(100, 10, largest) {
            let point = Point::measure(procs, n, &work);
            say(format_args!(
                "{procs:>5} {n:>10} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
                point.spawn_ns, point.switch_ns, point.park_ns, point.steal_ns
            ));
            points.push(point.row());
        }
    }
    gomaxprocs(before);
    Ok(Report::new(args, largest).secs(start.elapsed()).set("points", points))
}

/// `first`, `first * factor`, ... up to `last`.
fn steps(first: u64, factor: u64, last: u64) -> impl Iterator<Item = u64> {
    iter::successors(Some(first), move |step| Some(step * factor)).take_while(move |s| *s <= last)
}

/// The costs for one number of processors and of goroutines.
struct Point {
    procs: u64,
    n: u64,
    spawn_ns: f64,
    switch_ns: f64,
    park_ns: f64,
    steal_ns: f64,
}

impl Point {
    fn measure(procs: u64, n: u64, work: &Work) -> Self {
        Point {
            procs,
            n,
            spawn_ns: spawn_ns(n),
            switch_ns: switch_ns(n),
            park_ns: park_ns(n),
            steal_ns: work.steal_ns(procs, n),
        }
    }

    fn row(self) -> Report {
        Report::default()
            .set("procs", self.procs)
            .set("n", self.n)
            .set("spawn_ns", self.spawn_ns)
            .set("switch_ns", self.switch_ns)
            .set("park_ns", self.park_ns)
            .set("steal_ns", self.steal_ns)
    }
}

/// A spawn, an empty run and a join, n tasks at a time.
fn spawn_ns(n: u64) -> f64 {
    let rounds = OPS.div_ceil(n);
    let start = Instant::now();
    for _ in 0..rounds {
        let tasks: Vec<_> = (0..n).map(|_| spawn(|| ())).collect();
        tasks.into_iter().for_each(join);
    }
    ns_per(start.elapsed(), rounds * n)
}

/// A yield, among n goroutines which all do nothing else.
fn switch_ns(n: u64) -> f64 {
    let each = OPS.div_ceil(n).max(5);
    let came = Arc::new(AtomicU64::new(0)); // n + 1: all have come, go on
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            let came = came.clone();
            spawn(move || {
                came.fetch_add(1, Relaxed);
                while came.load(Relaxed) <= n {
                    yield_now();
                }
                (0..each).for_each(|_| yield_now());
            })
        })
        .collect();
    while came.load(Relaxed) < n {
        yield_now();
    }
    let start = Instant::now();
    came.fetch_add(1, Relaxed);
    tasks.into_iter().for_each(join);
    ns_per(start.elapsed(), each * n)
}

/// A wake-up and the park after it: n goroutines are woken in rounds.
fn park_ns(n: u64) -> f64 {
    let rounds = Arc::new(Rounds { n, now: AtomicU64::new(0), woken: AtomicU64::new(0) });
    let host = current();
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            let (rounds, host) = (rounds.clone(), host.clone());
            spawn(move || rounds.take_part(&host))
        })
        .collect();
    rounds.play(1, &tasks); // all have started and park again
    let count = OPS.div_ceil(n).max(2);
    let start = Instant::now();
    (2..2 + count).for_each(|round| rounds.play(round, &tasks));
    let took = start.elapsed();
    rounds.tell(Rounds::OVER, &tasks);
    tasks.into_iter().for_each(join);
    ns_per(took, count * n)
}

/// Rounds in each of which a host wakes n tasks, and the last of these wakes the host.
struct Rounds {
    n: u64,
    /// The round. Written by the host, read by the tasks.
    now: AtomicU64,
    /// Wake-ups in all rounds. Written by the tasks, read by the host.
    woken: AtomicU64,
}

impl Rounds {
    /// There are no more rounds.
    const OVER: u64 = u64::MAX;

    /// What a task does.
    fn take_part(&self, host: &Thread) {
        let mut seen = 0;
        loop {
            // ORDERING: pairs with `tell`; there is nothing else to see.
            let now = self.now.load(Acquire);
            if now == Self::OVER {
                return;
            }
            if now == seen {
                park();
                continue;
            }
            seen = now;
            // ORDERING: pairs with `play`; there is nothing else to see.
            if self.woken.fetch_add(1, Release) + 1 == now * self.n {
                host.unpark();
            }
        }
    }

    /// One round, from the host's side.
    fn play(&self, round: u64, tasks: &[JoinHandle<()>]) {
        self.tell(round, tasks);
        // ORDERING: pairs with `take_part`; there is nothing else to see.
        while self.woken.load(Acquire) < round * self.n {
            park();
        }
    }

    fn tell(&self, round: u64, tasks: &[JoinHandle<()>]) {
        // ORDERING: pairs with `take_part`; there is nothing else to see.
        self.now.store(round, Release);
        tasks.iter().for_each(|task| task.thread().unpark());
    }
}

/// What is there to be stolen.
struct Work {
    rounds: u64,
    cpus: u64,
}

impl Work {
    fn new() -> Self {
        let cpus = available_parallelism().map_or(1, |cpus| cpus.get()) as u64;
        Work { rounds: calibrate(STOLEN_WORK), cpus }
    }

    /// What a task costs beyond its work when all are started on one processor.
    fn steal_ns(&self, procs: u64, n: u64) -> f64 {
        let rounds = OPS.div_ceil(10 * n);
        let work = self.rounds;
        let start = Instant::now();
        for _ in 0..rounds {
            let tasks: Vec<_> = (0..n).map(|_| spawn(move || spin(work))).collect();
            tasks.into_iter().for_each(join);
        }
        let ideal = STOLEN_WORK.as_nanos() as f64 / procs.min(self.cpus) as f64;
        ns_per(start.elapsed(), rounds * n) - ideal
    }
}
