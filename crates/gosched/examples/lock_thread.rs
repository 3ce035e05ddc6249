//! A goroutine locked to its thread, with and without the unlock.
//!
//! While it is locked the goroutine has its thread for itself, as a graphics library or a name
//! space wants it. One that ends without unlocking takes the thread with it: what it did to the
//! thread must not be seen by others. So a forgotten unlock costs a thread for each goroutine.
//!
//! `cargo run --release --example lock_thread`

use gosched::{go, run, runtime, thread};
use std::collections::HashSet;
use std::fmt;

const GOROUTINES: usize = 20;

/// What the goroutines came to.
pub(crate) struct Shown {
    pub(crate) way: &'static str,
    pub(crate) goroutines: usize,
    /// Different threads that they ran on, one after the other.
    pub(crate) threads: usize,
    /// Whether each stayed on one thread while it was locked.
    pub(crate) stayed: bool,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { way, goroutines, threads, stayed } = self;
        let stayed = if *stayed { "stayed" } else { "moved" };
        write!(
            f,
            "{way:<9} {goroutines} goroutines on {threads} threads; while locked each {stayed}"
        )
    }
}

fn thread_id() -> i32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::gettid() }
}

/// Locks, waits a few times, and says on which threads it was.
fn locked(unlocks: bool) -> HashSet<i32> {
    runtime::lock_os_thread();
    let seen = (0..3)
        .map(|_| {
            thread::yield_now();
            thread_id()
        })
        .collect();
    if unlocks {
        runtime::unlock_os_thread();
    }
    seen
}

/// The right way, then the wrong one.
pub(crate) fn demo() -> [Shown; 2] {
    [show("unlocked", true), show("forgotten", false)]
}

fn show(way: &'static str, unlocks: bool) -> Shown {
    let mut threads = HashSet::new();
    let mut stayed = true;
    for _ in 0..GOROUTINES {
        let seen = go(move || locked(unlocks)).join().unwrap_or_default();
        stayed &= seen.len() == 1;
        threads.extend(seen);
    }
    Shown { way, goroutines: GOROUTINES, threads: threads.len(), stayed }
}

fn main() {
    println!("Goroutines that lock themselves to their thread, one after the other.");
    println!("Look at the threads: an unlocked one is used again by the next goroutine; one whose");
    println!("goroutine forgot to unlock ends with it, because nobody knows what was done to it.");
    run(|| demo().iter().for_each(|shown| println!("{shown}")));
}
