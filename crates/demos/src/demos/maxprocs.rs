//! `maxprocs`: as many processors as the host has CPUs, or as the quota allows.

use crate::container::HOST_CPUS;
use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::machine;
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{count, time};
use gosched::{doctor, go, runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const DEMO: Demo = Demo {
    name: "maxprocs",
    about: "a container with less CPU time than its host has CPUs",
    question: "The process believes to be in a container on a host with 64 CPUs, with a quota of as \
        many as this machine really has. Goroutines compute some 5 ms each, beside one that wakes every \
        millisecond. Look at the processors, and at what the kernel has to do.",
    size: Size { what: "goroutines that compute", usual: 200, quick: 20, most: 100_000 },
    wants_folder: false,
    columns: &[
        "gomaxprocs",
        "threads",
        "took_ns",
        "kernel_switches",
        "tick_median_late_ns",
        "tick_p99_late_ns",
    ],
    cases: &[
        Case::new(Wrong, HOST, show).with("root={container},containermaxprocs=0"),
        Case::new(Right, QUOTA, show).with("root={container},containermaxprocs=1"),
    ],
    explain,
};

const HOST: &str = "the host's CPUs";
const QUOTA: &str = "the container's quota";
/// Rounds of [`compute`] for each goroutine: some 5 ms.
const ROUNDS: u64 = 4_000;

fn compute(rounds: u64) {
    for round in 0..rounds {
        std::hint::black_box((0..1_000).fold(round, |sum, i| sum.wrapping_mul(31) + i));
    }
}

fn show(setup: &Setup) -> Result<Figures, String> {
    let rounds = if setup.quick { ROUNDS / 10 } else { ROUNDS };
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let ticker = go(move || ticks(&seen));
    let switches = machine::involuntary_switches();
    let start = Instant::now();
    let all: Vec<_> = (0..setup.size).map(|_| go(move || compute(rounds))).collect();
    all.into_iter().try_for_each(|g| g.join()).map_err(|_| "a goroutine panicked")?;
    let took = start.elapsed();
    let switches = machine::involuntary_switches().saturating_sub(switches);
    over.store(true, Relaxed);
    let late = ticker.join().map_err(|_| "the ticker panicked")?;
    let at = |share: usize| late.get((late.len() * share / 100).min(late.len().saturating_sub(1)));
    let nanos = |at: Option<&Duration>| at.map_or(0, Duration::as_nanos);
    Ok(Figures::new()
        .set("gomaxprocs", runtime::gomaxprocs(0))
        .set("threads", runtime::counters().machines)
        .set("took_ns", took.as_nanos())
        .set("kernel_switches", switches)
        .set("tick_median_late_ns", nanos(at(50)))
        .set("tick_p99_late_ns", nanos(at(99)))
        .note(doctor::examine().why))
}

/// How late each tick was, sorted.
fn ticks(over: &AtomicBool) -> Vec<Duration> {
    const TICK: Duration = Duration::from_millis(1);
    let mut late = Vec::new();
    while !over.load(Relaxed) {
        let start = Instant::now();
        thread::sleep(TICK);
        late.push(start.elapsed().saturating_sub(TICK));
    }
    late.sort_unstable();
    late
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let (host, quota) = (get(HOST, "gomaxprocs"), get(QUOTA, "gomaxprocs"));
    let switches = |case| get(case, "kernel_switches");
    let p99 = |case| get(case, "tick_p99_late_ns");
    vec![
        Finding::of(
            host == HOST_CPUS as u64 && quota < host,
            format!(
                "Without a look at the quota there are {host} processors, with it {quota}. The \
                 default follows the strictest quota of all cgroups around the process, rounded up, \
                 at least 2, and follows its changes while the program runs."
            ),
            format!("GOMAXPROCS was {host} and {quota}: the variables of the environment decided."),
        ),
        Finding::of(
            switches(HOST) > switches(QUOTA),
            format!(
                "Where more goroutines run than there are CPUs the kernel takes turns: {} times it \
                 took the CPU from a thread that wanted to go on, against {}. The work was done in \
                 {} and {}; more processors don't make more CPU time.",
                count(switches(HOST)),
                count(switches(QUOTA)),
                time(get(HOST, "took_ns")),
                time(get(QUOTA, "took_ns")),
            ),
            format!(
                "The kernel did not switch more often with more processors ({} and {} times).",
                count(switches(HOST)),
                count(switches(QUOTA)),
            ),
        ),
        Finding::of(
            p99(HOST) > p99(QUOTA),
            format!(
                "One of a hundred ticks was {} late or more, against {}: a thread that the kernel \
                 has set aside can be woken by nobody, and a real quota stops all of them until its \
                 next period.",
                time(p99(HOST)),
                time(p99(QUOTA)),
            ),
            format!(
                "The ticks were no later with more processors ({} and {} for one of a hundred). Run it \
                 again while nothing else runs on this machine.",
                time(p99(HOST)),
                time(p99(QUOTA)),
            ),
        ),
    ]
}
