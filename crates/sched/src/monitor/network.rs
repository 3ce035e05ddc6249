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

/// How often anybody had polled at the last look, and when that number was new. Monitor only.
static POLLED: Noted = Noted::new();
static POLLED_AT: Noted = Noted::new();
/// Whether nobody had polled between the last two looks. Monitor only.
static IS_ALONE: Noted = Noted::new();

/// Whether it seems that nobody but the monitor looks at files.
pub(super) fn is_alone() -> bool {
    IS_ALONE.get() != 0
}

/// How long nobody has polled before the monitor does.
const POLL_AFTER_NS: u64 = 200_000;

/// Polls, if no machine comes by because all of them compute, and gives what is ready to a processor
/// at once. Where goroutines come and go a machine polls every few rounds: no reason to push in.
pub(super) fn run_ready(now: u64) -> usize {
    IS_ALONE.set(0);
    if !must_poll() {
        return 0;
    }
    let polls = netpoll::polls();
    if POLLED.replace(polls) == polls {
        IS_ALONE.set(1);
    } else {
        POLLED_AT.set(now);
    }
    let waited = now - POLLED_AT.get();
    let computes = |p: &Processor| p.slice.lasted(p, now) >= POLL_AFTER_NS;
    if waited < POLL_AFTER_NS || (waited < PAUSE_MAX_NS && !SCHEDULER.processors().all(computes)) {
        return 0;
    }
    history::anyone(Kind::Begun, 0);
    let ready = netpoll::poll(Wait::Never);
    POLLED.set(netpoll::polls());
    POLLED_AT.set(now);
    let count = place_all(ready, now);
    history::anyone(Kind::Finished, 0);
    count
}
