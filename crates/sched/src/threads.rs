//! Goroutines that wait for a stack.
//!
//! Making a stack and a thread-local block allocates, so it never happens inside the runtime: a
//! goroutine whose first run finds none at hand is set aside until a helper thread has made one,
//! or another goroutine ends and leaves its own.
//!
//! While processors are busy the newest goes first: a tree of tasks then runs in depth, on stacks
//! that are hot. The helper sees to it that the oldest gets its turn, see `gosched_fiber::pool`.

use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::scheduler::SCHEDULER;
use crate::{idle, switch};
use gosched_base::Lock;
use gosched_fiber::Fiber;
use gosched_fiber::pool::{self, Refill};
use gosched_fiber::stack::Class;
use gosched_runq::List;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Those of one size class.
struct Waiting {
    /// Newest first.
    newest: List<GRef>,
    /// Oldest first; all of them older than `newest`.
    oldest: List<GRef>,
}

static WAITING: [Lock<Waiting>; Class::COUNT] =
    [const { Lock::new(Waiting { newest: List::new(), oldest: List::new() }) }; Class::COUNT];

/// How many goroutines wait for a fiber.
static FIBER_WAITERS: AtomicUsize = AtomicUsize::new(0);

/// How many goroutines wait for a fiber; none of them is asleep for good.
pub(crate) fn fiber_waiters() -> usize {
    // ORDERING: Relaxed; read when all is quiet, and as a hint.
    FIBER_WAITERS.load(Relaxed)
}

/// Sets `g` aside until there is a fiber for it. Inside the runtime.
pub(crate) fn wait_for_fiber(g: GRef) {
    let class = g.class.get();
    history::goroutine(Kind::WaitFiber, g, 0);
    // ORDERING: Relaxed; see `fiber_waiters`.
    FIBER_WAITERS.fetch_add(1, Relaxed);
    WAITING[class.index()].lock().newest.push_front(g);
    pool::request(class);
}

/// The goroutine that gets a fiber that the caller has. Inside the runtime.
pub(crate) fn stop_waiting_for_fiber(class: Class) -> Option<GRef> {
    if fiber_waiters() == 0 || !pool::withdraw(class) {
        return None;
    }
    let g = WAITING[class.index()].lock().pop_newest();
    match g {
        // ORDERING: Relaxed; the caller makes it runnable under a processor.
        Some(_) => drop(FIBER_WAITERS.fetch_sub(1, Relaxed)),
        // The helper has the list in hand.
        None => pool::request(class),
    }
    g
}

/// A processor goes idle: if it is for want of fibers, they are made at once.
#[inline]
pub(crate) fn processor_is_idle() {
    if fiber_waiters() > 0 {
        pool::hurry();
    }
}

impl Waiting {
    fn pop_newest(&mut self) -> Option<GRef> {
        self.newest.pop_front().or_else(|| self.oldest.pop_front())
    }
}

/// The longest-waiting goroutine. Only one thread at a time does this.
fn pop_oldest(waiting: &Lock<Waiting>) -> Option<GRef> {
    let mut held = waiting.lock();
    if let Some(g) = held.oldest.pop_front() {
        return Some(g);
    }
    let mut newest = std::mem::replace(&mut held.newest, List::new());
    drop(held);
    // Turned round without the lock: there may be a million.
    let mut oldest = List::new();
    while let Some(g) = newest.pop_front() {
        oldest.push_front(g);
    }
    let mut held = waiting.lock();
    // Still empty: nobody else fills it.
    held.oldest = oldest;
    held.oldest.pop_front()
}

/// What the threads that make fibers do with them.
pub(crate) static REFILL: Refill =
    Refill { is_waiting: || SCHEDULER.idle_count() > 0, offer, flush: idle::wake_one_from_outside };

/// Offered each new fiber.
fn offer(fiber: Fiber, is_idle: bool) -> bool {
    let waiting = &WAITING[fiber.class().index()];
    let g = if is_idle { waiting.lock().pop_newest() } else { pop_oldest(waiting) };
    let Some(g) = g else {
        // The helper has the list in hand, so the request that this fiber was to answer stands.
        pool::request(fiber.class());
        return false;
    };
    switch::attach_fiber(g, fiber);
    history::goroutine(Kind::GotFiber, g, 0);
    SCHEDULER.injected.push(g);
    // ORDERING: Relaxed; after the injection, so that one of the two is always seen.
    FIBER_WAITERS.fetch_sub(1, Relaxed);
    true
}
