//! Goroutines in futex waits that sleep without a thread: lists by the futex's address.
//!
//! Wakes that come by libc's `syscall` (see `interpose`) find them here; what wakes by another way
//! (another copy of std, another process) does not, so that each looks again now and then.
//!
//! Invariants
//! * I1. A record is in its list from the commit until a waker or its timer takes it out, under the
//!   list's lock; whoever does wakes it, and does not touch it afterwards.
//! * I2. No wake is lost: who waits counts itself and then looks at the word, who wakes has changed
//!   the word and then looks at the count, with a full fence between on both sides.

use crate::machine::Inside;
use crate::reason::WaitReason;
use crate::rt::{AtomicU32, Cell, LISTS, Lock, array, fence, shared};
use crate::wait::{Waiter, block_until};
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

shared! {
    /// How many records there are.
    static COUNT: AtomicU32 = AtomicU32::new(0);
}
shared! {
    static QUEUES: [Lock<Queue>; LISTS] = array!(Lock::new(Queue::new()));
}

/// One that waits, on its own stack. Guarded by: its list's lock.
struct Record {
    address: usize,
    waiter: Cell<Option<Waiter>>,
    next: Cell<*const Record>,
    previous: Cell<*const Record>,
}

// SAFETY: the cells are touched under the list's lock.
unsafe impl Sync for Record {}

struct Queue {
    first: *const Record,
    last: *const Record,
}

// SAFETY: the pointers are used under the lock.
unsafe impl Send for Queue {}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Somebody woke it, or the word differed.
    Woken,
    /// The time is over.
    TimedOut,
}

/// Parks the calling goroutine until `address` is woken, at most for `pause`; not at all if the
/// word there is not `expected`.
///
/// # Safety
/// * `address` is that of a futex word.
pub(crate) unsafe fn wait(address: usize, expected: u32, pause: Duration) -> Ended {
    let record = Record {
        address,
        waiter: Cell::new(None),
        next: Cell::new(ptr::null()),
        previous: Cell::new(ptr::null()),
    };
    let (record, queue) = (&record, queue_of(address));
    let is_out_of_time = Cell::new(false);
    let timed_out = Flag(&is_out_of_time);
    // ORDERING: Relaxed; the fence below orders it (I2).
    COUNT.fetch_add(1, Relaxed);
    block_until(
        WaitReason::Futex,
        Instant::now() + pause,
        |waiter| {
            let mut queue = queue.lock();
            // ORDERING: I2; pairs with `wake`.
            fence(SeqCst);
            // SAFETY: by the caller.
            let word = unsafe { &*(address as *const AtomicU32) };
            // ORDERING: Relaxed; the fence orders it, and the caller reads it again.
            if word.load(Relaxed) != expected {
                return false;
            }
            record.waiter.set(Some(waiter));
            queue.push(record);
            true
        },
        || {
            let mut queue = queue.lock();
            let waits = record.waiter.take().is_some();
            if waits {
                queue.remove(record);
                timed_out.raise();
            }
            waits
        },
    );
    // ORDERING: Relaxed; a count too high costs a look.
    COUNT.fetch_sub(1, Relaxed);
    if is_out_of_time.get() { Ended::TimedOut } else { Ended::Woken }
}

/// Raised under the list's lock, by whoever ends the wait; read by the waiter afterwards.
struct Flag<'a>(&'a Cell<bool>);

// SAFETY: see above: the two are ordered by the wake.
unsafe impl Sync for Flag<'_> {}

impl Flag<'_> {
    fn raise(&self) {
        self.0.set(true);
    }
}

/// Whether any goroutine waits here. The caller has changed its word before.
pub(crate) fn has_waiters() -> bool {
    // ORDERING: I2; pairs with the fence in `wait`.
    fence(SeqCst);
    COUNT.load(Relaxed) > 0
}

/// Wakes up to `max` of those that wait at `address`, in order; how many. Outside the runtime.
pub(crate) fn wake(address: usize, max: u32) -> u32 {
    let mut woken = 0;
    while woken < max {
        // Who holds the lock must not be stopped.
        let inside = Inside::enter();
        let waiter = queue_of(address).lock().pop(address);
        if let Some(inside) = inside {
            if let Some(waiter) = waiter {
                waiter.wake_inside(&inside);
            }
            inside.leave();
        } else if let Some(waiter) = waiter {
            waiter.wake();
        }
        if waiter.is_none() {
            break;
        }
        woken += 1;
    }
    woken
}

fn queue_of(address: usize) -> &'static Lock<Queue> {
    // Fibonacci hashing; the lowest two bits of an address are 0.
    let hash = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    &QUEUES[hash % LISTS]
}

impl Queue {
    const fn new() -> Queue {
        Queue { first: ptr::null(), last: ptr::null() }
    }

    fn push(&mut self, record: &Record) {
        record.previous.set(self.last);
        // SAFETY: in the list, so it waits (I1).
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(record),
            None => self.first = record,
        }
        self.last = record;
    }

    /// Takes the first one at `address` out.
    fn pop(&mut self, address: usize) -> Option<Waiter> {
        let mut at = self.first;
        // SAFETY: as in `push`.
        while let Some(record) = unsafe { at.as_ref() } {
            if record.address == address {
                self.remove(record);
                return record.waiter.take();
            }
            at = record.next.get();
        }
        None
    }

    fn remove(&mut self, record: &Record) {
        let (previous, next) = (record.previous.get(), record.next.get());
        // SAFETY: as in `push`.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => self.first = next,
        }
        // SAFETY: as in `push`.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(previous),
            None => self.last = previous,
        }
    }
}
