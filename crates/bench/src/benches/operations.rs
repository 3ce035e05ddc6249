//! `operations`: n times one operation, always in the same order, which makes the number of
//! instructions a figure. `cargo xtask instructions` counts them under callgrind.
//!
//! The other benches leave the order to the scheduler: a task that has to wait for its stack starts
//! later than one that has not, and whether a channel's sender or its receiver comes first changes
//! who parks ever after. Here stacks are there before, and who comes second waits for the first.

use super::Outcome;
use crate::args::{Args, UsageError};
use crate::report::Report;
use crate::tasks::{join, spawn};
use gosched::channel::bounded;
use gosched::thread::{park, yield_now};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// So many tasks exist at once at most.
const WAVE: u64 = 100;

/// Does so many of one kind.
type Operation = fn(u64);

pub(crate) fn run(args: &Args) -> Outcome {
    if args.procs != 1 {
        return Err(UsageError::new("operations have an order with --procs 1 only"));
    }
    let n = args.n(1_000_000)?;
    let operations: &[(&str, Operation)] = &[
        ("spawn", spawns),
        ("switch", switches),
        ("park", parks),
        ("unbuffered", |n| values(n, 0)),
        ("buffered", |n| values(n, 128)),
    ];
    let operation = args.choice("op", operations)?;
    spawns(WAVE);
    let start = Instant::now();
    operation(n);
    Ok(Report::new(args, n).time(start.elapsed(), n))
}

/// A spawn, an empty run and a join each.
fn spawns(n: u64) {
    let mut joined = 0;
    while joined < n {
        let wave = WAVE.min(n - joined);
        let tasks: Vec<_> = (0..wave).map(|_| spawn(|| ())).collect();
        for task in tasks {
            join(task);
            joined += 1;
        }
    }
}

/// A yield to another task each.
fn switches(n: u64) {
    let each = n.div_ceil(2);
    let other = spawn(move || (0..each).for_each(|_| yield_now()));
    (0..each).for_each(|_| yield_now());
    join(other);
}

/// A wake-up and a park each: two tasks wake each other in turn.
fn parks(n: u64) {
    let each = n.div_ceil(2);
    let ball = Arc::new(AtomicBool::new(false)); // true: it is the other's turn
    let (here, place) = (gosched::thread::current(), ball.clone());
    let other = spawn(move || {
        for _ in 0..each {
            while !place.load(Relaxed) {
                park();
            }
            place.store(false, Relaxed);
            here.unpark();
        }
    });
    for _ in 0..each {
        ball.store(true, Relaxed);
        other.thread().unpark();
        while ball.load(Relaxed) {
            park();
        }
    }
    join(other);
}

/// A send and a receive each; the receiver waits before anything is sent.
fn values(n: u64, cap: usize) {
    let (sender, receiver) = bounded(cap);
    let receiver = spawn(move || receiver.iter().sum::<u64>());
    yield_now();
    (0..n).for_each(|i| sender.send(i).expect("somebody receives"));
    drop(sender);
    assert_eq!(join(receiver), n * (n - 1) / 2);
}
