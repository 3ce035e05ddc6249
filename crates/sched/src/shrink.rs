//! Deep pages of goroutines that wait. Go's `shrinkstack`.
//!
//! A goroutine that was deep in calls once and now waits near the top of its stack holds memory that
//! it may never need again. What lies below the stack pointer that it left is nobody's, as long as it
//! does not run; and it does not while the world is stopped. So those worth it are looked for while
//! everything runs, and a few at a time are given their pages taken away in stops of some hundred
//! microseconds: the system takes five for each.

use crate::goroutine::{GRef, GoroutineId};
use crate::scheduler::SCHEDULER;
use crate::{slab, world};
use gosched_fiber::stack;
use gosched_protocol::Status;

/// Less than so many bytes are not worth the page faults.
const WORTH: usize = 16 << 10;
/// So many in each stop of the world.
const AT_ONCE: usize = 16;

/// A goroutine as it was seen waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    g: GRef,
    id: GoroutineId,
    position: [usize; 3],
}

impl Seen {
    /// `g`, if it waits; a hint unless the world is stopped.
    fn waiting(g: GRef) -> Option<Seen> {
        (g.status.get() == Status::Waiting).then(|| Seen { g, id: g.id(), position: g.position() })
    }

    fn stack_pointer(&self) -> usize {
        self.position[1]
    }

    /// Gives its pages back if it has not run since. The world is stopped.
    fn shrink(&self) {
        if Seen::waiting(self.g) == Some(*self) {
            // SAFETY: it has parked on a processor, and all of those are in the caller's hands: so
            // its registers are saved, it stands where they say, and nobody can run it meanwhile.
            unsafe { stack::release_below(self.stack_pointer()) };
            SCHEDULER.counts.shrunk_stacks.add_shared();
        }
    }
}

/// Gives back what waiting goroutines hold below their stack pointers: of all that wait, or of those
/// that have waited for a minute or more.
pub(crate) fn waiting_stacks(only_old: bool) {
    let mut some = [None; AT_ONCE];
    let mut count = 0;
    slab::for_each(|g| {
        let Some(seen) = Seen::waiting(g) else { return };
        if only_old && g.waiting_minutes() == 0 {
            return;
        }
        if stack::resident_below(seen.stack_pointer()) < WORTH {
            return;
        }
        some[count] = Some(seen);
        count += 1;
        if count == AT_ONCE {
            shrink(&some);
            count = 0;
        }
    });
    if count > 0 {
        shrink(&some[..count]);
    }
}

fn shrink(some: &[Option<Seen>]) {
    world::stop_to_collect(|| some.iter().flatten().for_each(Seen::shrink));
}
