//! `forensics`: tasks of 10 ms each, all started at once; when they end, since the start.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::Sorted;
use crate::tasks::{join_all, spawn};
use crate::work::{calibrate, spin};
use gosched::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

const BUSY: Duration = Duration::from_millis(10);

/// How often a task yields, with `mode=yield`.
const YIELDS: u64 = 100;

/// What a task does for its 10 ms.
#[derive(Clone, Copy)]
enum Mode {
    Busy,
    Yield,
    Sleep,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Busy => "busy",
            Mode::Yield => "yield",
            Mode::Sleep => "sleep",
        }
    }

    fn work(self, rounds: u64) {
        match self {
            Mode::Busy => spin(rounds),
            Mode::Sleep => sleep(BUSY),
            Mode::Yield => (0..YIELDS).for_each(|_| {
                spin(rounds / YIELDS);
                yield_now();
            }),
        }
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let modes = [Mode::Busy, Mode::Yield, Mode::Sleep].map(|mode| (mode.name(), mode));
    let mode = args.choice("mode", &modes)?;
    let rounds = calibrate(BUSY);
    let start = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            spawn(move || {
                mode.work(rounds);
                start.elapsed().as_nanos() as u64
            })
        })
        .collect();
    let done = Sorted::new(join_all(tasks));
    Ok(Report::new(args, n)
        .secs(start.elapsed())
        .set("mode", mode.name())
        .set("done_p50_ms", done.at(0.50) / 1e6)
        .set("done_p90_ms", done.at(0.90) / 1e6)
        .set("done_p99_ms", done.at(0.99) / 1e6)
        .set("done_max_ms", done.at(1.0) / 1e6))
}
