//! What ran on each processor in the last seconds.
//!
//! A plain thread looks at all processors every 10 ms while somebody asks for it, and ends some seconds
//! after the last one did. It is no goroutine: one would run on a processor whenever it looks, and
//! would come late when all are busy. A record of each goroutine's run would take two clocks at each
//! switch, and show nothing that can be seen at a hundred pixels a second; switches are counted exactly
//! anyway, and how many there were between two looks is shown with them.

use gosched::metrics::{Activity, ProcessorState, Snapshot, snapshot};
use gosched::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

/// How often it looks.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);
/// How many looks are kept: 12 s.
const LOOKS: usize = 1200;
/// It ends so long after somebody asked last.
const PATIENCE: Duration = Duration::from_secs(15);

/// All processors at one moment.
pub(crate) struct Look {
    /// Counted from the first one.
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) lanes: Vec<Lane>,
}

/// A processor at one moment.
pub(crate) struct Lane {
    pub(crate) activity: Activity,
    pub(crate) goroutine: u64,
    pub(crate) site: Option<&'static Location<'static>>,
    /// Since the look before.
    pub(crate) switches: u64,
    pub(crate) queued: usize,
}

pub(crate) struct Recent {
    pub(crate) looks: VecDeque<Look>,
    next: u64,
    asked: Option<Instant>,
    is_running: bool,
}

static RECENT: Mutex<Recent> =
    Mutex::new(Recent { looks: VecDeque::new(), next: 0, asked: None, is_running: false });

fn recent() -> MutexGuard<'static, Recent> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was seen lately. Starts the thread if it does not run.
pub(crate) fn watch<T>(read: impl FnOnce(&Recent) -> T) -> T {
    let mut recent = recent();
    recent.asked = Some(Instant::now());
    if !recent.is_running {
        recent.looks.clear();
        let started =
            thread::Builder::new().name("gosched-debug".to_owned()).spawn(look_for_a_while);
        // Without a thread there is nothing to see, and the rest of the page goes on.
        recent.is_running = started.is_ok();
    }
    read(&recent)
}

fn look_for_a_while() {
    let mut before = Vec::new();
    loop {
        let (at, now) = (Instant::now(), snapshot());
        if !keep(at, &now, &before) {
            return;
        }
        before = now.processors.iter().map(switches).collect();
        thread::sleep(PERIOD);
    }
}

/// False: nobody has asked for long.
fn keep(at: Instant, now: &Snapshot, before: &[u64]) -> bool {
    let mut recent = recent();
    if recent.asked.is_none_or(|asked| at.saturating_duration_since(asked) > PATIENCE) {
        recent.is_running = false;
        return false;
    }
    if recent.looks.len() == LOOKS {
        recent.looks.pop_front();
    }
    let lanes = now.processors.iter().enumerate().map(|(i, p)| lane(p, before.get(i).copied()));
    let look = Look { number: recent.next, at, lanes: lanes.collect() };
    recent.next += 1;
    recent.looks.push_back(look);
    true
}

fn lane(p: &ProcessorState, before: Option<u64>) -> Lane {
    Lane {
        activity: p.activity,
        goroutine: p.goroutine.unwrap_or(0),
        site: p.site,
        switches: before.map_or(0, |before| switches(p).saturating_sub(before)),
        queued: p.queued,
    }
}

/// How many goroutines began to run on it.
pub(crate) fn switches(p: &ProcessorState) -> u64 {
    p.counters.scheduled + p.counters.direct_switches + p.counters.runs_in_place
}
