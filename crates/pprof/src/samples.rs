//! Samples on their way from signal handlers to the thread that collects them.
//!
//! Places of a fixed number. A handler fills one that is empty, the collector empties it. Whoever has a
//! place has its lock, which handlers only try. The collector waits for them, a moment each: a sample
//! that was complete before a drain has to be in it, since what it names may be dropped afterwards.

use gosched_base::Lock;
use gosched_sched::profile::Interrupted;
use gosched_unwind::Frames;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Enough for 100 CPUs between two collections; 1.1 MiB.
const PLACES: usize = 1024;
/// So many are looked at for an empty one.
const TRIES: usize = 16;

/// What a handler has seen.
#[derive(Default)]
pub(crate) struct Sample {
    /// How many periods it stands for; 0: the place is empty.
    pub(crate) periods: u64,
    /// Of the profile that it was taken for.
    pub(crate) number: usize,
    pub(crate) whose: Interrupted,
    pub(crate) frames: Frames,
}

static PLACES_MADE: OnceLock<Box<[Lock<Sample>]>> = OnceLock::new();
/// Where the next handler looks first.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Periods that found no place.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Makes the places. Allocates.
pub(crate) fn prepare() {
    PLACES_MADE.get_or_init(|| (0..PLACES).map(|_| Lock::new(Sample::default())).collect());
    // ORDERING: Relaxed; a number.
    LOST.store(0, Relaxed);
}

/// Has `fill` fill an empty place. Signal-safe, as `fill` has to be.
pub(crate) fn put(periods: u64, fill: impl FnOnce(&mut Sample)) {
    let Some(places) = PLACES_MADE.get() else { return };
    // ORDERING: Relaxed; only so that handlers look in different places.
    let first = NEXT.fetch_add(1, Relaxed);
    let mut tried = (0..TRIES).filter_map(|i| places[first.wrapping_add(i) % PLACES].try_lock());
    match tried.find(|place| place.periods == 0) {
        Some(mut place) => {
            fill(&mut place);
            place.periods = periods;
        }
        None => {
            // ORDERING: Relaxed; a number.
            LOST.fetch_add(periods, Relaxed);
        }
    }
}

/// Calls `f` with each sample of profile `number`, and forgets it with those of earlier ones. The
/// collector's, whose thread runs no handler of ours.
pub(crate) fn drain(number: usize, mut f: impl FnMut(&Sample)) {
    for place in PLACES_MADE.get().into_iter().flatten() {
        let mut place = place.lock();
        if place.periods > 0 && place.number == number {
            f(&place);
        }
        place.periods = 0;
    }
}

/// Periods that found no place since [`prepare`].
pub(crate) fn lost() -> u64 {
    // ORDERING: Relaxed; a number.
    LOST.load(Relaxed)
}
