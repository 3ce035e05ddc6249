//! `blocking`: many tasks block in the kernel beside one that sleeps 1 ms at a time.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::late_ns;
use crate::tasks::{join, join_all, spawn};
use gosched::thread::sleep;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);

/// How the tasks block.
#[derive(Clone, Copy)]
enum Via {
    /// In `std::thread::sleep`, declared.
    Declared,
    /// In `std::thread::sleep`, undeclared.
    Sleep,
    /// In `read` of a timer's descriptor, undeclared.
    Read,
}

const WAYS: &[(&str, Via)] =
    &[("declared", Via::Declared), ("sleep", Via::Sleep), ("read", Via::Read)];

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(200)?;
    let block = Duration::from_millis(args.get("ms", 50)?);
    let via = args.choice("via", WAYS)?;
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let ticker = spawn(move || tick_until(&seen));
    sleep(Duration::from_millis(20));
    let before = gosched::runtime::counters();
    let start = Instant::now();
    join_all((0..n).map(|_| spawn(blocker(via, block))).collect::<Vec<_>>());
    let took = start.elapsed();
    let after = gosched::runtime::counters();
    // ORDERING: Relaxed; there is nothing else to see.
    over.store(true, Relaxed);
    let lateness = join(ticker);
    let declared = after.declared_hand_offs - before.declared_hand_offs;
    let undeclared = after.undeclared_hand_offs - before.undeclared_hand_offs;
    Ok(Report::new(args, n)
        .secs(took)
        .set("ticks", lateness.len())
        .lateness(lateness)
        .set("via", WAYS.iter().find(|(_, way)| *way as u8 == via as u8).map_or("", |w| w.0))
        .set("declared_hand_offs", declared)
        .set("prompt_hand_offs", after.prompt_hand_offs - before.prompt_hand_offs)
        .set("undeclared_hand_offs", undeclared)
        .set("machines", after.machines))
}

/// Sleeps 1 ms at a time; how late each sleep ended.
fn tick_until(over: &AtomicBool) -> Vec<u64> {
    let mut lateness = Vec::new();
    // ORDERING: Relaxed; there is nothing else to see.
    while !over.load(Relaxed) {
        let start = Instant::now();
        sleep(TICK);
        lateness.push(late_ns(start, TICK));
    }
    lateness
}

fn blocker(via: Via, block: Duration) -> Box<dyn FnOnce() + Send> {
    match via {
        Via::Declared => Box::new(move || gosched::blocking(|| std::thread::sleep(block))),
        Via::Sleep => Box::new(move || std::thread::sleep(block)),
        Via::Read => Box::new(move || read_after(block)),
    }
}

/// Sleeps in `read`. Nobody has to write, so that the time is all the bench's own.
fn read_after(block: Duration) {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::timespec {
        tv_sec: block.as_secs() as libc::time_t,
        tv_nsec: block.subsec_nanos().into(),
    };
    let when = libc::itimerspec { it_interval: never, it_value: once };
    // SAFETY: no memory is passed.
    let file = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    assert!(file >= 0, "a timer for each task: {}", io::Error::last_os_error());
    // SAFETY: new, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(file) };
    // SAFETY: reads one setting, which is ours.
    let set = unsafe { libc::timerfd_settime(file.as_raw_fd(), 0, &when, std::ptr::null_mut()) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
    file.read_exact(&mut [0; 8]).expect("the timer's count");
}
