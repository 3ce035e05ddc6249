//! Collections that nobody asked for.
//!
//! The monitor looks once a second. A cycle is due when stacks beyond the reserve have been idle
//! since its last look, so a program that has had its peak gets small within some seconds; and two
//! minutes after the last one if goroutines have ended since, as Go's forced collection. Idle
//! processors do not keep the monitor from it: it sleeps until the next look is due, and for ever
//! once there is nothing to give back.
//!
//! The cycle drops values of users (`sync::Pool`), which may take as long as it likes, so that it
//! has a thread of its own, made for each by the starter.

use crate::monitor::Noted;
use crate::scheduler::SCHEDULER;
use crate::{collect, fleet, start, yields};
use gosched_fiber::pool;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Release, SeqCst},
};

const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// Go's `forcegcperiod`.
const FORCED_AFTER_NS: u64 = 120_000_000_000;
/// Fewer idle stacks are not worth a stop of the world.
const SURPLUS_MIN: usize = 64;

/// When the monitor looked last, and when a cycle was asked for last. Monitor only.
static LOOKED: Noted = Noted::new();
static CYCLED: Noted = Noted::new();
/// How many goroutines had ended by then. Monitor only.
static ENDED: Noted = Noted::new();
/// Whether the last look has found idle stacks to wait for. Monitor only.
static MAY_BE_SURPLUS: Noted = Noted::new();

/// A cycle is to be run, and whether one runs.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
static RUNS: AtomicBool = AtomicBool::new(false);
/// Whether the program wants none.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Switches cycles that nobody asks for on or off, and returns what was before. None runs any more
/// when it returns from switching them off. Go's `debug.SetGCPercent(-1)`.
pub fn set_background_gc(on: bool) -> bool {
    start::ensure_started();
    // ORDERING: SeqCst for this and the look below, as in `run_if_asked`: one of the two sees the
    // other.
    let was_off = IS_OFF.swap(!on, SeqCst);
    while !on && RUNS.load(SeqCst) {
        yields::gosched();
    }
    !was_off
}

/// For the monitor: is a cycle due?
pub(crate) fn look(now: u64) {
    if now.saturating_sub(LOOKED.get()) < LOOK_EVERY_NS || !is_on() {
        return;
    }
    LOOKED.set(now);
    if CYCLED.get() == 0 {
        CYCLED.set(now);
    }
    let (surplus, idle) = pool::surplus();
    MAY_BE_SURPLUS.set(u64::from(idle >= SURPLUS_MIN));
    let is_late = now.saturating_sub(CYCLED.get()) >= FORCED_AFTER_NS && ended() != ENDED.get();
    if surplus >= SURPLUS_MIN || is_late {
        CYCLED.set(now);
        ENDED.set(ended());
        // ORDERING: AcqRel pairs with `run_if_asked`.
        IS_ASKED.swap(true, AcqRel);
        fleet::call_starter();
    }
}

/// Until when the monitor may sleep while all processors are idle.
pub(crate) fn next_look() -> u64 {
    if !is_on() {
        return u64::MAX;
    }
    let has_ended = ended() != ENDED.get();
    if MAY_BE_SURPLUS.get() != 0 || (has_ended && pool::idle_count() > 2 * SURPLUS_MIN) {
        LOOKED.get() + LOOK_EVERY_NS
    } else if has_ended {
        CYCLED.get() + FORCED_AFTER_NS
    } else {
        u64::MAX
    }
}

fn is_on() -> bool {
    // ORDERING: SeqCst; see `set_background_gc`.
    !IS_OFF.load(SeqCst) && SCHEDULER.settled.get().is_some_and(|settled| settled.collects)
}

/// Goroutines that have ended so far.
fn ended() -> u64 {
    SCHEDULER.all_processors().map(|p| p.counters.ended.get()).sum()
}

/// For the starter: runs the cycle that the monitor has asked for.
pub(crate) fn run_if_asked() {
    // ORDERING: AcqRel pairs with `look`; SeqCst as in `set_background_gc`, and pairs with `end`.
    if !IS_ASKED.swap(false, AcqRel) || RUNS.swap(true, SeqCst) {
        return;
    }
    if !is_on() {
        return end();
    }
    // It counts as foreign while it runs: what it drops may wake goroutines, so there is no verdict of
    // a deadlock meanwhile.
    let spawned = std::thread::Builder::new().name("gosched-gc".into()).spawn(|| {
        start::block_signals();
        collect::run_in_background();
        end();
    });
    if spawned.is_err() {
        // Next time.
        end();
    }
}

fn end() {
    // ORDERING: Release pairs with `run_if_asked`.
    RUNS.store(false, Release);
}
