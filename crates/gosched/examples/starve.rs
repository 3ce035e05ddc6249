//! A loop that only computes, and another goroutine that wants the same processor.
//!
//! The loop starts the other goroutine, then computes until that one has run, or until it loses its
//! patience. There is one processor. What to look at is who came first:
//!
//! * With preemption off, as before Go 1.14, the loop never gives way: the other one runs when the
//!   loop has given up. A server would answer nobody meanwhile.
//! * With an explicit yield in the loop it runs at once, at the price that somebody has to think of
//!   the yield, in every loop, those of libraries included.
//! * With preemption on, which is the default, the monitor stops the loop after its time slice of
//!   10 ms, between any two instructions, and the loop has nothing to know of it.
//!
//! `cargo run --release --example starve`

use gosched::{go, run, runtime, thread};
use std::env;
use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How the loop behaves, and what stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nothing stops it.
    Off,
    /// It yields.
    Yield,
    /// It is stopped after a slice.
    On,
}

/// The ways, with their names.
pub(crate) const WAYS: [(&str, Way); 3] =
    [("preemption off", Way::Off), ("explicit yield", Way::Yield), ("preemption on", Way::On)];

impl Way {
    /// What the process must be started with: preemption is on or off for all of it.
    pub(crate) fn settings(self) -> &'static str {
        match self {
            Way::On => "procs=1",
            Way::Off | Way::Yield => "procs=1,asyncpreemptoff=1",
        }
    }

    /// How long the loop waits for the other one to run. Only where nothing stops it is the end in
    /// sight.
    fn patience(self) -> Duration {
        match self {
            Way::Off => Duration::from_millis(300),
            Way::Yield | Way::On => Duration::from_secs(600),
        }
    }
}

/// What happened.
pub(crate) struct Shown {
    way: Way,
    /// Whether the other goroutine ran while the loop still computed.
    other_first: bool,
    /// How long the loop computed.
    computed: Duration,
    /// How often a goroutine was stopped.
    stopped: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = WAYS.iter().find(|(_, way)| *way == self.way).map_or("", |(name, _)| name);
        let who = match self.other_first {
            true => "the other ran beside the loop",
            false => "the other ran after the loop",
        };
        let (computed, stopped) = (self.computed, self.stopped);
        write!(f, "{name}: {who}, which computed {computed:.1?} and was stopped {stopped} times")
    }
}

/// One way, in a process that was started with its settings.
pub(crate) fn show(way: Way) -> Shown {
    let before = runtime::preemptions().in_place;
    let (other_first, computed) = go(move || hog(way)).join().unwrap_or_default();
    Shown { way, other_first, computed, stopped: runtime::preemptions().in_place - before }
}

fn hog(way: Way) -> (bool, Duration) {
    let has_run = Arc::new(AtomicBool::new(false));
    let tell = has_run.clone();
    // ORDERING: Relaxed, here and below; there is nothing else to see.
    let other = go(move || tell.store(true, Relaxed));
    let start = Instant::now();
    let mut sum = 0_u64;
    while !has_run.load(Relaxed) && start.elapsed() < way.patience() {
        sum = std::hint::black_box((0..1_000).fold(sum, |sum, i| sum.wrapping_mul(31) + i));
        if way == Way::Yield {
            thread::yield_now();
        }
    }
    let seen = (has_run.load(Relaxed), start.elapsed());
    let _ = other.join();
    seen
}

fn main() {
    if let Some((_, way)) = env::args().nth(1).and_then(|asked| named(&asked)) {
        return println!("{}", run(move || show(way)));
    }
    for (name, way) in WAYS {
        let program = env::current_exe().expect("this program has a file");
        let mut child = Command::new(program);
        child.arg(name).env("GOSCHED", way.settings()).env_remove("GOMAXPROCS");
        assert!(child.status().is_ok_and(|status| status.success()), "{name}");
    }
}

/// The way of that name.
pub(crate) fn named(asked: &str) -> Option<(&'static str, Way)> {
    WAYS.into_iter().find(|(name, _)| *name == asked)
}
