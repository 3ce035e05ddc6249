//! False sharing: two goroutines, each with a counter of its own.
//!
//! Processors share memory by lines of 64 bytes. Two counters in one line belong to both
//! goroutines as far as the hardware can tell, and the line goes to and fro with each step. Look at
//! the time of a step, on two processors or more: a line for each counter makes it several times
//! shorter. `CachePadded` gives a value lines of its own.
//!
//! `cargo run --release --example false_sharing`

use gosched::runtime;
use gosched::sync::{Arc, CachePadded};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What came out.
pub(crate) struct Shown {
    pub(crate) counts: [u64; 2],
    /// Between the addresses of the counters.
    pub(crate) bytes_apart: usize,
    pub(crate) a_step: Duration,
}

#[derive(Default)]
struct Packed {
    counters: [AtomicU64; 2],
}

#[derive(Default)]
struct Padded {
    counters: [CachePadded<AtomicU64>; 2],
}

trait Counters: Send + Sync + 'static {
    fn get(&self, i: usize) -> &AtomicU64;
}

impl Counters for Packed {
    fn get(&self, i: usize) -> &AtomicU64 {
        &self.counters[i]
    }
}

impl Counters for Padded {
    fn get(&self, i: usize) -> &AtomicU64 {
        &self.counters[i]
    }
}

fn count(counters: impl Counters, steps: u64) -> Shown {
    let counters = Arc::new(counters);
    let address = |i: usize| std::ptr::from_ref(counters.get(i)).addr();
    let bytes_apart = address(1) - address(0);
    let start = Instant::now();
    let both = [0, 1].map(|i| {
        let counters = counters.clone();
        gosched::go(move || {
            let counter = counters.get(i);
            for _ in 0..steps {
                counter.fetch_add(1, Relaxed);
            }
        })
    });
    both.into_iter().for_each(|g| g.join().expect("it only counts"));
    let a_step = start.elapsed() / u32::try_from(steps).unwrap_or(u32::MAX);
    Shown { counts: [0, 1].map(|i| counters.get(i).load(Relaxed)), bytes_apart, a_step }
}

/// In one line, and in lines of their own.
pub(crate) fn demo(steps: u64) -> [Shown; 2] {
    [count(Packed::default(), steps), count(Padded::default(), steps)]
}

#[gosched::main]
fn main() {
    let procs = runtime::gomaxprocs(0);
    println!("two counters, two goroutines, {procs} processors");
    for (what, shown) in ["in one line", "padded"].into_iter().zip(demo(20_000_000)) {
        let Shown { counts, bytes_apart, a_step } = shown;
        println!("{what:<12} {bytes_apart:>3} bytes apart, {a_step:?} a step, counted {counts:?}");
    }
}
