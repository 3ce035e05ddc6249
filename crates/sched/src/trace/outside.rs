//! Lanes that belong to no machine.

use super::lane::{Lane, Section};
use crate::rt::give_way;
use gosched_base::Lock;
use gosched_trace_format::NO_THREAD;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// So many threads can write at once that are no machines.
const OUTSIDE: usize = 16;
/// Their lanes' numbers as threads.
const OUTSIDE_THREAD: u64 = 1 << 40;

/// The lane of whoever has taken it.
struct Shared {
    is_taken: AtomicBool,
    lane: Lane,
}

static SHARED: [Shared; OUTSIDE] =
    [const { Shared { is_taken: AtomicBool::new(false), lane: Lane::new() } }; OUTSIDE];

/// Calls `write` with a lane that no machine has, or with nothing if no trace is on.
pub(super) fn write(write: impl FnOnce(Option<&mut Section<'_>>)) {
    let mut at = gosched_base::os::gettid() as usize % OUTSIDE;
    // ORDERING: Relaxed look; Acquire pairs with the Release below.
    while SHARED[at].is_taken.load(Relaxed) || SHARED[at].is_taken.swap(true, Acquire) {
        at = (at + 1) % OUTSIDE;
        if at == 0 {
            give_way();
        }
    }
    write(SHARED[at].lane.enter(OUTSIDE_THREAD + at as u64).as_mut());
    // ORDERING: Release: the next one to take it finds the lane as it was left.
    SHARED[at].is_taken.store(false, Release);
}

/// Where strings of the user's go. One writer at a time: under the lock.
static TEXTS: Lock<()> = Lock::new(());
static TEXT_LANE: Lane = Lane::new();

/// Writes `text` in the generation of `section`, whose writer the collector waits for.
pub(super) fn text(section: &Section<'_>, id: u64, text: &str) {
    let _alone = TEXTS.lock();
    if let Some(mut own) = TEXT_LANE.enter_within(section, NO_THREAD) {
        own.put_string(id, text);
    }
}

/// Every lane that belongs to no machine.
pub(super) fn all() -> impl Iterator<Item = &'static Lane> {
    SHARED.iter().map(|shared| &shared.lane).chain([&TEXT_LANE])
}
