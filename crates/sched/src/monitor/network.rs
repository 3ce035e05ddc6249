//! The monitor's look at the network, for when no machine comes by.

use super::placing::place_all;
use super::{Noted, PAUSE_MAX_NS};
use crate::history::{self, Kind};
use crate::netpoll;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use gosched_poll::Wait;

/// Whether files may be ready that nobody looks at: all processors are busy.
fn must_poll() -> bool {
    netpoll::has_files() && !SCHEDULER.is_polled()
}

/// When the monitor has last polled, and when anybody else had. Monitor only.
static OWN_AT: Noted = Noted::new();
static OTHERS_AT: Noted = Noted::new();
/// The rounds of all processors at the last look. Monitor only.
static ROUNDS: Noted = Noted::new();
/// Whether nobody else has polled for so long that the monitor may have to. Monitor only.
static IS_ALONE: Noted = Noted::new();

/// Whether it seems that nobody but the monitor looks at files.
pub(super) fn is_alone() -> bool {
    IS_ALONE.get() != 0
}

/// How long nobody has polled before the monitor does.
const POLL_AFTER_NS: u64 = 200_000;
/// Processors that have made more rounds than this between two looks go from goroutine to goroutine, and
/// who has not polled for a moment waits for a CPU perhaps: the next look will tell.
const FEW_ROUNDS: u64 = 60;

/// Polls, if no machine comes by because all of them compute, and gives what is ready to a processor
/// at once. Where goroutines come and go a machine polls every few rounds: no reason to push in.
pub(super) fn run_ready(now: u64) -> usize {
    IS_ALONE.set(0);
    let rounds = rounds_since_last_look();
    if !must_poll() {
        return 0;
    }
    let at = netpoll::polled_at();
    let has_changed = at != OWN_AT.get() && OTHERS_AT.replace(at) != at;
    let waited = now.saturating_sub(OTHERS_AT.get());
    if waited < POLL_AFTER_NS || has_changed && rounds > FEW_ROUNDS {
        return 0;
    }
    // The next look comes soon: it shows whether all of them compute.
    IS_ALONE.set(1);
    let computes = |p: &Processor| p.slice.lasted(p, now) >= POLL_AFTER_NS;
    if waited < PAUSE_MAX_NS && !SCHEDULER.processors().all(computes) {
        return 0;
    }
    history::anyone(Kind::Begun, 0);
    let ready = netpoll::poll(Wait::Never);
    OWN_AT.set(netpoll::polled_at());
    let count = place_all(ready, now);
    history::anyone(Kind::Finished, 0);
    count
}

/// How many rounds all processors have made since then.
fn rounds_since_last_look() -> u64 {
    let made: u64 = SCHEDULER.processors().map(|p| u64::from(p.tick())).sum();
    made.wrapping_sub(ROUNDS.replace(made))
}
