//! Making the fibers that were requested, in batches.
//!
//! While nobody has anything else to do, every request is served: one at first, then twice as many
//! at a time, since waking a sleeper costs as much as making a fiber does.
//!
//! While all are busy a new stack makes nothing faster. Goroutines that end leave theirs to those
//! that wait, so a tree of tasks that are spawned faster than they run is walked in depth on a few
//! hot stacks, instead of in breadth on a million cold ones. But nobody waits for ever, so some
//! are made all the same, at a pace.

use super::{IDLE, Make, REQUESTS, give, is_waiting, makers, refill};
use crate::fiber::Makings;
use crate::stack::Class;

/// The largest batch: half a millisecond's work.
const BATCH_MAX: usize = 128;
/// How many are made for busy requesters at a time, see `helper::PACE`.
const PACED_BATCH: usize = 32;

/// How far the requests for a class were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Served {
    /// Nobody waits.
    All,
    /// Somebody waits, but has other things to do.
    InPart,
    /// Somebody waits, and there is no memory.
    NoMemory,
}

/// One look of the helper's at all requests. `is_time`: some are served to those who are busy, too.
/// Unless it says [`Served::All`] the helper looks again without a bell.
pub(super) fn serve_all(make: Make, is_time: bool) -> Served {
    REQUESTS.begin_look();
    let served = Class::all().map(|class| serve(class, make, is_time)).max();
    let served = served.unwrap_or(Served::All);
    if served == Served::InPart {
        REQUESTS.leave_for_later();
    }
    served
}

/// Serves the requests for `class`.
pub(super) fn serve(class: Class, make: Make, is_time: bool) -> Served {
    let mut batch = 1;
    let mut paced = if is_time { PACED_BATCH } else { 0 };
    while REQUESTS.wanted(class) > 0 {
        let urgent = is_waiting();
        let count = if urgent { batch } else { std::mem::take(&mut paced) };
        if count == 0 {
            return Served::InPart;
        }
        if urgent && batch == BATCH_MAX {
            makers::call(REQUESTS.wanted(class));
        }
        let claimed = REQUESTS.claim(class, count);
        let made = serve_batch(class, claimed, make, urgent);
        if made < claimed {
            REQUESTS.unclaim(class, claimed - made);
            return Served::NoMemory;
        }
        batch = (batch * 2).min(BATCH_MAX);
    }
    Served::All
}

/// Serves up to `count` requests, and returns how many.
fn serve_batch(class: Class, count: usize, make: Make, urgent: bool) -> usize {
    let refill = refill();
    let mut made = 0;
    let mut taken = 0;
    let mut makings = None;
    while made < count {
        let idle = IDLE[class.index()].lock().pop();
        let new = || make(makings.get_or_insert_with(|| Makings::new(class, count - made)));
        let Some(fiber) = idle.or_else(new) else { break };
        made += 1;
        match refill {
            Some(refill) if (refill.offer)(fiber, urgent) => taken += 1,
            // SAFETY: it was idle or is new, and nobody took it.
            _ => unsafe { give(fiber) },
        }
    }
    if let Some(refill) = refill
        && taken > 0
    {
        (refill.flush)();
    }
    made
}
