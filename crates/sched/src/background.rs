//! Collections that nobody asked for.
//!
//! The monitor looks once a second. A cycle is due when stacks beyond the reserve have been idle
//! since its last look, so a program that has had its peak gets small within some seconds; and two
//! minutes after the last one if goroutines have ended since, as Go's forced collection. Idle
//! processors do not keep the monitor from it: it sleeps until the next look is due, and for ever
//! once there is nothing to give back.
//!
//! While many goroutines end, a cycle gives stacks back and no more (`collect`). The rest follows as
//! soon as the program is calm, or after those two minutes.
//!
//! The cycle drops values of users (`sync::Pool`), which may take as long as it likes, so that it
//! has a thread of its own, made for each by the starter.

use crate::monitor::Noted;
use crate::scheduler::SCHEDULER;
use crate::{collect, fleet, start, yields};
use gosched_fiber::{pool, thread};
use std::panic::catch_unwind;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Relaxed, Release, SeqCst},
};

const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// Go's `forcegcperiod`.
const FORCED_AFTER_NS: u64 = 120_000_000_000;
/// Fewer idle stacks are not worth a stop of the world.
const SURPLUS_MIN: usize = 64;
/// So many goroutines that end in a second make a program busy.
const BUSY: u64 = 10_000;
/// As std's threads: it runs what users drop.
const STACK_BYTES: usize = 2 << 20;
/// Stacks given back from which on libc's allocator is worth a walk.
const WORTH_A_TRIM: u64 = 1024;

/// When the monitor looked last, and when a cycle was asked for last. Monitor only.
static LOOKED: Noted = Noted::new();
static CYCLED: Noted = Noted::new();
/// How many goroutines had ended by then. Monitor only.
static ENDED: Noted = Noted::new();
/// Whether the last look has found idle stacks to wait for. Monitor only.
static MAY_BE_SURPLUS: Noted = Noted::new();

/// How many goroutines had ended at the last look. Monitor only.
static ENDED_AT_LOOK: Noted = Noted::new();
/// Whether many had ended since the look before, and the last whole cycle is not too long ago.
static IS_BUSY: AtomicBool = AtomicBool::new(false);
/// How many stacks had been given back when the allocator gave its pages back last.
static TRIMMED: AtomicU64 = AtomicU64::new(0);

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
    let ended = ended();
    let is_late = now.saturating_sub(CYCLED.get()) >= FORCED_AFTER_NS && ended != ENDED.get();
    let is_busy = ended - ENDED_AT_LOOK.get() >= BUSY && !is_late;
    ENDED_AT_LOOK.set(ended);
    // ORDERING: Relaxed; comes with the request.
    IS_BUSY.store(is_busy, Relaxed);
    if surplus >= SURPLUS_MIN || is_late || (is_trim_owed() && !is_busy) {
        if !is_busy {
            CYCLED.set(now);
            ENDED.set(ended);
        }
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
    if MAY_BE_SURPLUS.get() != 0
        || is_trim_owed()
        || (has_ended && pool::idle_count() > 2 * SURPLUS_MIN)
    {
        LOOKED.get() + LOOK_EVERY_NS
    } else if has_ended {
        CYCLED.get() + FORCED_AFTER_NS
    } else {
        u64::MAX
    }
}

/// Whether many blocks have been freed since libc's allocator gave its pages back.
pub(crate) fn is_trim_owed() -> bool {
    // ORDERING: Relaxed; a number that steers.
    pool::given_back().saturating_sub(TRIMMED.load(Relaxed)) >= WORTH_A_TRIM
}

/// libc's allocator is about to give its pages back.
pub(crate) fn note_trim() {
    // ORDERING: Relaxed; as above.
    TRIMMED.store(pool::given_back(), Relaxed);
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
    static COLLECT: fn() = collect_once;
    if thread::start(&COLLECT, Some(STACK_BYTES)).is_err() {
        // Next time.
        end();
    }
}

/// The thread of a cycle.
fn collect_once() {
    thread::set_name(c"gosched-gc");
    start::block_signals();
    // What users drop there may panic; the hook has said so.
    // ORDERING: Relaxed; came with the request.
    let _ = catch_unwind(|| collect::run_in_background(IS_BUSY.load(Relaxed)));
    end();
}

fn end() {
    // ORDERING: Release pairs with `run_if_asked`.
    RUNS.store(false, Release);
}
