//! A user's signal handler, on the goroutine's stack, that computes for longer than a slice.

use crate::pulse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use testprogs::random::Random;
use testprogs::registers::{FLAGS_ANY, Held};
use testprogs::signals::{Surroundings, install_past_libc, send, thread_id};

/// How often the handler ran to its end.
static RUNS: AtomicU64 = AtomicU64::new(0);
/// What went wrong in it: it can't panic.
static WRONG: AtomicU64 = AtomicU64::new(0);

pub(crate) fn install() {
    install_past_libc(libc::SIGUSR1, handle);
}

extern "C" fn handle(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let run = RUNS.load(Relaxed);
    let before = Surroundings::now();
    let kept = Held::random(&mut Random::new(run), FLAGS_ANY);
    let mut held = kept.clone();
    held.keep(60_000);
    let is_right = held == kept && Surroundings::now() == before;
    WRONG.fetch_add(u64::from(!is_right), Relaxed);
    RUNS.fetch_add(1, Relaxed);
}

/// Signals the thread while it keeps values in registers.
pub(crate) fn signalled(random: &mut Random) {
    let before = Held::random(random, FLAGS_ANY);
    let mut after = before.clone();
    let runs = RUNS.load(Relaxed);
    send(thread_id(), libc::SIGUSR1);
    after.keep(20_000);
    assert_eq!(after, before, "a register has changed");
    // The thread may be another goroutine's by now, but it has the signal.
    while RUNS.load(Relaxed) == runs {
        pulse::compute(1, 1);
    }
    assert_eq!(WRONG.load(Relaxed), 0, "a handler began on one thread and ended on another");
}
