//! `stealing`: work created on every processor, most of it on one.
//!
//! Where each goroutine was created and where it first ran is read from the execution trace.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::time;
use gosched::sync::{Arc, Mutex, WaitGroup};
use gosched::{go, runtime, thread, trace};
use gosched_trace_format::{Kind, verify};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub(super) const DEMO: Demo = Demo {
    name: "stealing",
    about: "uneven work: idle processors take what others have too much of",
    question: "A goroutine on each processor creates others, the first ten times as many as the \
        rest, each with the same work. Look at how many ran on another processor than that on which \
        they were created, and at the time.",
    // A processor's queue holds 256; what does not fit goes to everybody, stolen or not.
    size: Size { what: "goroutines of the first processor", usual: 240, quick: 40, most: 240 },
    wants_folder: false,
    columns: &["gomaxprocs", "goroutines", "ran_elsewhere", "steals", "took_ns"],
    cases: &[
        Case::new(Wrong, OFF, uneven).with("steal=0"),
        Case::new(Right, ON, uneven).with("steal=1"),
    ],
    explain,
};

const OFF: &str = "stealing off";
const ON: &str = "stealing on";
/// Some 200 us for each goroutine, optimised.
const ROUNDS: u64 = 8_000;

fn compute(rounds: u64) {
    for round in 0..rounds {
        std::hint::black_box((0..100).fold(round, |sum, i| sum.wrapping_mul(31) + i));
    }
}

/// Lets a goroutine on each processor create its share, all at the same time.
pub(super) fn create_on_all(size: u64, rounds: u64) {
    let procs = runtime::gomaxprocs(0);
    let (start, all) = (Arc::new(Start::default()), WaitGroup::new());
    let creators: Vec<_> = (0..procs)
        .map(|nth| {
            let (start, all) = (start.clone(), all.clone());
            let share = if nth == 0 { size } else { size / 10 };
            go(move || {
                start.wait_for(procs);
                for _ in 0..share {
                    all.go(move || compute(rounds));
                }
            })
        })
        .collect();
    creators.into_iter().for_each(|creator| _ = creator.join());
    all.wait();
}

/// Where goroutines wait until each has a processor of its own.
#[derive(Default)]
struct Start {
    /// How many of them run, and wait without giving their processor away.
    present: AtomicUsize,
    is_open: AtomicBool,
}

impl Start {
    fn wait_for(&self, all: usize) {
        const PATIENCE: Duration = Duration::from_millis(1);
        loop {
            // Over the global queue, from which every processor takes.
            runtime::gosched();
            self.present.fetch_add(1, SeqCst);
            let since = Instant::now();
            while since.elapsed() < PATIENCE {
                if self.present.load(SeqCst) == all {
                    self.is_open.store(true, SeqCst);
                }
                if self.is_open.load(SeqCst) {
                    return;
                }
            }
            // Somebody may be in the queue of this processor.
            let leaves = |present| (present < all).then(|| present - 1);
            if self.present.fetch_update(SeqCst, SeqCst, leaves).is_err() {
                self.is_open.store(true, SeqCst);
                return;
            }
        }
    }
}

/// Goroutines that begin find a stack at once; who waits for one is given to anybody.
fn make_stacks(count: u64) {
    let all: Vec<_> = (0..count).map(|_| go(thread::park)).collect();
    all.iter().for_each(|g| g.thread().unpark());
    all.into_iter().for_each(|g| _ = g.join());
}

fn uneven(setup: &Setup) -> Result<Figures, String> {
    let file = Arc::new(Mutex::new(Vec::new()));
    make_stacks(2 * setup.size);
    trace::start(Shared(file.clone())).map_err(|error| error.to_string())?;
    let before = runtime::counters();
    let start = Instant::now();
    create_on_all(setup.size, if setup.quick { ROUNDS / 8 } else { ROUNDS });
    let took = start.elapsed();
    let after = runtime::counters();
    trace::stop().map_err(|error| error.to_string())?;
    let file = std::mem::take(&mut *file.lock().unwrap());
    let seen = Seen::of(&file)?;
    let steals = after.steals + after.next_steals - before.steals - before.next_steals;
    let figures = Figures::new()
        .set("gomaxprocs", runtime::gomaxprocs(0))
        .set("goroutines", seen.all())
        .set("ran_elsewhere", seen.elsewhere())
        .set("steals", steals)
        .set("took_ns", took.as_nanos());
    Ok(seen.processors.iter().fold(figures, |figures, (p, of)| {
        let Processor { created, ran, taken } = of;
        figures.note(format!("P{p}: created {created}, ran {ran}, of which {taken} from others"))
    }))
}

/// What the goroutines of one processor came to.
#[derive(Debug, Default)]
struct Processor {
    created: u64,
    ran: u64,
    /// Of those that ran.
    taken: u64,
}

/// Where goroutines were created, and first ran.
#[derive(Debug, Default)]
struct Seen {
    created: HashMap<u64, u64>,
    processors: BTreeMap<u64, Processor>,
}

impl Seen {
    fn of(file: &[u8]) -> Result<Seen, String> {
        let mut all = Seen::default();
        verify(file, |_, seen| {
            let p = seen.after.p.or(seen.before.p);
            match (seen.event.kind, p) {
                (Kind::GoCreate, Some(p)) => all.created(seen.event.args[0], p),
                (Kind::GoStart, Some(p)) => all.started(seen.event.args[0], p),
                _ => {}
            }
        })
        .map_err(|fault| fault.to_string())?;
        Ok(all)
    }

    fn created(&mut self, g: u64, p: u64) {
        self.created.insert(g, p);
        self.processors.entry(p).or_default().created += 1;
    }

    fn started(&mut self, g: u64, p: u64) {
        // Only the first time.
        let Some(created) = self.created.remove(&g) else { return };
        let processor = self.processors.entry(p).or_default();
        processor.ran += 1;
        processor.taken += u64::from(created != p);
    }

    fn all(&self) -> u64 {
        self.processors.values().map(|p| p.ran).sum()
    }

    fn elsewhere(&self) -> u64 {
        self.processors.values().map(|p| p.taken).sum()
    }
}

/// A file in memory.
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let (on, off) = (get(ON, "ran_elsewhere"), get(OFF, "ran_elsewhere"));
    let procs = get(ON, "gomaxprocs");
    vec![
        Finding::of(
            on > off && get(ON, "steals") > 0,
            format!(
                "With stealing {on} goroutines ran on another processor than that on which they were \
                 created, in {} steals, each of half of what the victim had. Without it {off} did, \
                 which can only have come through the global queue. The trace says which (above).",
                get(ON, "steals"),
            ),
            format!(
                "With stealing {on} goroutines ran elsewhere, without it {off}. GOMAXPROCS was \
                 {procs}; with one processor there is nobody to steal from."
            ),
        ),
        Finding::of(
            on > off && get(ON, "took_ns") < get(OFF, "took_ns"),
            format!(
                "The whole took {} with stealing and {} without, where the others stand idle while \
                 the first works its queue off.",
                time(get(ON, "took_ns")),
                time(get(OFF, "took_ns")),
            ),
            format!(
                "The whole took {} with stealing and {} without: with one CPU for all processors, \
                 or others at work on this machine, a second processor does not make it faster.",
                time(get(ON, "took_ns")),
                time(get(OFF, "took_ns")),
            ),
        ),
    ]
}
