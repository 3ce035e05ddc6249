//! Blocking calls in goroutines, three ways: bare, declared, and limited in number.
//!
//! The calls sleep in the kernel, as a C library that waits for a disk or a database would. Beside
//! them a goroutine wakes every millisecond: none of the three ways holds it up. What differs is
//! how many threads they take.
//!
//! `cargo run --release --example ffi`

use gosched::{Limiter, blocking, go, run, runtime, thread};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CALLS: usize = 100;
const LASTS: Duration = Duration::from_millis(10);
static FOUR: Limiter = Limiter::new(4);

/// What the calls came to.
pub(crate) struct Shown {
    pub(crate) way: &'static str,
    pub(crate) calls: usize,
    pub(crate) took: Duration,
    /// Threads that ran goroutines or calls, at the end.
    pub(crate) machines: u64,
    /// How late the other goroutine's latest wake-up was.
    pub(crate) latest: Duration,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { way, calls, took, machines, latest } = self;
        write!(f, "{way:<9} {calls} calls in {took:>8.1?}, {machines:>3} threads, ")?;
        write!(f, "the ticker at most {latest:.1?} late")
    }
}

/// A foreign function that blocks; it knows nothing of goroutines.
fn foreign() {
    std::thread::sleep(LASTS);
}

/// The three ways. The fewest threads come first, since threads stay for a while.
pub(crate) fn demo() -> [Shown; 3] {
    [
        show("limited", || FOUR.run(foreign)),
        show("bare", foreign),
        show("declared", || blocking(foreign)),
    ]
}

fn show(way: &'static str, call: fn()) -> Shown {
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let ticker = go(move || latest_tick(&seen));
    let start = Instant::now();
    let calls: Vec<_> = (0..CALLS).map(|_| go(call)).collect();
    let calls = calls.into_iter().filter_map(|call| call.join().ok()).count();
    let took = start.elapsed();
    let machines = runtime::counters().machines;
    // ORDERING: Relaxed; there is nothing else to see.
    over.store(true, Relaxed);
    let latest = ticker.join().unwrap_or(Duration::MAX);
    Shown { way, calls, took, machines, latest }
}

fn latest_tick(over: &AtomicBool) -> Duration {
    const TICK: Duration = Duration::from_millis(1);
    let mut latest = Duration::ZERO;
    // ORDERING: Relaxed; there is nothing else to see.
    while !over.load(Relaxed) {
        let start = Instant::now();
        thread::sleep(TICK);
        latest = latest.max(start.elapsed().saturating_sub(TICK));
    }
    latest
}

fn main() {
    println!(
        "{CALLS} foreign calls of {LASTS:?} each, beside a goroutine that wakes every millisecond."
    );
    println!(
        "Look at the ticker: none of the ways holds it up, since the processor goes on without"
    );
    println!(
        "the thread that blocks. Look at the threads: each call has one while it lasts, so that"
    );
    println!("`limited` (four at a time) needs few and takes longest. `bare` says nothing to the");
    println!("runtime; the calls are noticed all the same.");
    run(|| demo().iter().for_each(|shown| println!("{shown}")));
}
