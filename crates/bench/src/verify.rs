//! `verify=1`: proof that each task ran as a goroutine of its own.
//!
//! A runtime could make a bench look fast by running tasks inside the spawner's loop. So each
//! task notes its goroutine's id, all of which must differ, and one in [`PARK_EVERY`] parks until
//! a plain thread makes it ready, which a function called in place could not do without stopping
//! its caller. Without `verify=1` none of this is in a task, and a spawn pays one relaxed load.
//!
//! Everything here is std's own, nothing the runtime's: what is proved must not be the proof.

use crate::report::Report;
use gosched::thread::Thread;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// One task of so many parks.
const PARK_EVERY: u64 = 1_000;

/// How long a parked task waits. Long against a park, so that it has parked before it is woken.
const PARK_FOR: Duration = Duration::from_micros(200);

/// How long the end waits for tasks that nobody joins.
const PATIENCE: Duration = Duration::from_secs(10);

static WAKER: OnceLock<mpsc::Sender<Parked>> = OnceLock::new();
static SPAWNED: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);
static HOST: OnceLock<u64> = OnceLock::new();
static IDS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// A task that waits for the waker thread.
struct Parked {
    thread: Thread,
    released: Arc<AtomicBool>,
}

/// Turns the verification on.
pub(crate) fn start() {
    let (parked, waiting) = mpsc::channel();
    WAKER.set(parked).expect("the verification starts once");
    std::thread::spawn(|| waiting.into_iter().for_each(wake));
}

/// Notes the goroutine that the bench itself runs in, where no task may run.
pub(crate) fn host() {
    if is_on() {
        HOST.set(own_id()).expect("a process runs one bench");
    }
}

pub(crate) fn is_on() -> bool {
    WAKER.get().is_some()
}

/// A task that notes itself before it does its work.
pub(crate) fn spawned<T>(f: impl FnOnce() -> T) -> impl FnOnce() -> T {
    // ORDERING: Relaxed; a count, read after the tasks were joined or polled for.
    SPAWNED.fetch_add(1, Relaxed);
    || {
        note();
        f()
    }
}

fn note() {
    let id = own_id();
    let nth = {
        let mut ids = IDS.lock().expect("no task panics while it holds the lock");
        ids.push(id);
        ids.len() as u64 - 1
    };
    if nth.is_multiple_of(PARK_EVERY) {
        park();
    }
}

fn own_id() -> u64 {
    gosched::runtime::goroutine_id().expect("benches run in goroutines")
}

fn park() {
    let released = Arc::new(AtomicBool::new(false));
    let parked = Parked { thread: gosched::thread::current(), released: released.clone() };
    WAKER.get().expect("it is on").send(parked).expect("the waker thread is for ever");
    // ORDERING: pairs with `wake`; there is nothing else to see than that it came.
    while !released.load(Acquire) {
        gosched::thread::park();
    }
    // ORDERING: Relaxed; a count, polled for.
    WOKEN.fetch_add(1, Relaxed);
}

fn wake(parked: Parked) {
    std::thread::sleep(PARK_FOR);
    // ORDERING: pairs with `park`; there is nothing else to see than that it came.
    parked.released.store(true, Release);
    parked.thread.unpark();
}

/// Checks what the tasks noted, and adds how much there was to check. Call it from a plain
/// thread when the bench is over.
pub(crate) fn finish(report: Report) -> Report {
    if !is_on() {
        return report;
    }
    // ORDERING: Relaxed; the bench is over, so nothing is spawned any more.
    let spawned = SPAWNED.load(Relaxed);
    let parks = spawned.div_ceil(PARK_EVERY);
    let start = Instant::now();
    // ORDERING: Relaxed; a count, polled for.
    while WOKEN.load(Relaxed) < parks || IDS.lock().is_ok_and(|ids| (ids.len() as u64) < spawned) {
        assert!(start.elapsed() < PATIENCE, "some of {spawned} tasks never ran or never woke");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut ids = IDS.lock().expect("no task panics while it holds the lock");
    ids.extend(HOST.get());
    ids.sort_unstable();
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "two ran in one goroutine");
    report.set("verified_tasks", spawned).set("verified_parks", parks)
}
