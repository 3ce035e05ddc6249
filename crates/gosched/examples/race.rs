//! A race: eight goroutines count to a thousand each.
//!
//! Rust refuses shared memory without synchronisation, so what is left is the race in the logic:
//! each step is atomic, and the pair of them, read and write, is not. Look at the first count: what
//! others added between the read and the write is lost, and how much differs from run to run.
//!
//! `cargo run --release --example race`

use gosched::sync::{Arc, Mutex, WaitGroup};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const GOROUTINES: u64 = 8;
pub(crate) const EACH: u64 = 1000;

/// What came out.
pub(crate) struct Shown {
    pub(crate) wrong: u64,
    pub(crate) atomic: u64,
    pub(crate) locked: u64,
}

fn count(add_one: impl Fn() + Send + Clone + 'static) {
    let all = WaitGroup::new();
    for _ in 0..GOROUTINES {
        let add_one = add_one.clone();
        all.go(move || (0..EACH).for_each(|_| add_one()));
    }
    all.wait();
}

pub(crate) fn demo() -> Shown {
    let total = Arc::new(AtomicU64::new(0));
    count({
        let total = total.clone();
        move || {
            let seen = total.load(Relaxed);
            // A longer computation, a call, a preemption: anything may come in between.
            gosched::thread::yield_now();
            total.store(seen + 1, Relaxed);
        }
    });
    let atomic = Arc::new(AtomicU64::new(0));
    count({
        let atomic = atomic.clone();
        move || _ = atomic.fetch_add(1, Relaxed)
    });
    let locked = Arc::new(Mutex::new(0));
    count({
        let locked = locked.clone();
        move || *locked.lock().unwrap() += 1
    });
    let locked = *locked.lock().unwrap();
    Shown { wrong: total.load(Relaxed), atomic: atomic.load(Relaxed), locked }
}

#[gosched::main]
fn main() {
    let Shown { wrong, atomic, locked } = demo();
    let right = GOROUTINES * EACH;
    println!("load, then store   {wrong:>5} of {right}: the others' steps in between are lost");
    println!("one atomic step    {atomic:>5} of {right}");
    println!("under a mutex      {locked:>5} of {right}: for more than one number");
}
