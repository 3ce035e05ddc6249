//! A shared library that uses goroutines inside, for C and for Python. Whoever calls it first starts
//! the runtime, on whatever thread.

use gosched::channel::bounded;
use gosched::{blocking, go, runtime, thread};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

thread_local!(static MINE: Cell<u64> = const { Cell::new(0) });

/// The sum of the numbers below `count`, each brought by a goroutine that sleeps, blocks, computes
/// and has a thread-local of its own.
#[unsafe(no_mangle)]
pub extern "C" fn embedded_sum(count: u64) -> u64 {
    let (bring, brought) = bounded(2);
    let all: Vec<_> = (0..count)
        .map(|n| {
            let bring = bring.clone();
            go(move || {
                assert_eq!(MINE.get(), 0, "a fresh one");
                MINE.set(n);
                match n % 4 {
                    0 => thread::sleep(Duration::from_micros(200)),
                    1 => blocking(|| std::thread::sleep(Duration::from_micros(200))),
                    2 => std::thread::sleep(Duration::from_micros(200)),
                    _ => (0..5_000_u64).for_each(|i| {
                        black_box(i.to_string());
                    }),
                }
                bring.send(MINE.get()).expect("somebody receives");
            })
        })
        .collect();
    drop(bring);
    let sum = brought.iter().sum();
    all.into_iter().for_each(|g| g.join().expect("no panic"));
    sum
}

/// The sum of what `function` makes of the numbers below `count`, each in a goroutine.
#[unsafe(no_mangle)]
pub extern "C" fn embedded_map(count: u64, function: extern "C" fn(u64) -> u64) -> u64 {
    let all: Vec<_> = (0..count).map(|n| go(move || function(n))).collect();
    all.into_iter().map(|g| g.join().expect("no panic")).sum()
}

/// How often a goroutine was stopped while it computed: in place, and with its thread.
#[unsafe(no_mangle)]
pub extern "C" fn embedded_stops() -> u64 {
    let stops = runtime::preemptions();
    stops.in_place + stops.frozen
}
