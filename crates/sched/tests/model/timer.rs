//! One processor's timers, with the scheduler's heap and waits.

#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../../src/timer/deadline.rs"]
mod deadline;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../../src/timer/heap.rs"]
mod heap;

pub(crate) use deadline::wait_with_deadline;

use crate::rt::Lock;
use deadline::Record;
use heap::Heap;

pub(crate) struct Timers {
    heap: Lock<Heap>,
}

loom::lazy_static! {
    static ref TIMERS: Timers = Timers { heap: Lock::new(Heap::new()) };
}

impl Timers {
    pub(crate) fn of_processor() -> &'static Timers {
        &TIMERS
    }

    /// As the scheduler's `take_due`, for all that there are.
    pub(crate) fn fire_all(&self) -> usize {
        let mut fired = 0;
        loop {
            let mut heap = self.heap.lock();
            let Some(first) = heap.first() else { return fired };
            heap.pop();
            // SAFETY: it was in the heap until now.
            let due = unsafe { Record::fire(first.hook()) };
            drop(heap);
            if let Some(g) = due {
                g.wake();
                fired += 1;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.lock().len() == 0
    }

    fn publish_next(&self, _: &Heap) {}
}
