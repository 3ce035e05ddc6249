//! Whose turn it is to wait in one direction of a file.
//!
//! std's sockets may be used by many threads at once: several accept from one listener. The poller
//! wakes one waiter for a change, so the others wait here, and whoever is done wakes the next, which
//! looks at the file itself. So one change wakes as many as find something, and one more.
//!
//! Go's counterpart is the read and write lock of `fdMutex`. There a deadline doesn't count for
//! those that wait for the lock; here it does.

use crate::rt::{
    Cancellation, Cell, Critical, Lock, WaitReason, Waiter, block, block_until, block_until_unless,
};
use std::ptr;
use std::time::Instant;

/// The right to wait, and those who want it.
pub(crate) struct Turn {
    queue: Lock<Queue>,
}

/// What is guarded by the lock.
struct Queue {
    taken: bool,
    first: *const Node,
    last: *const Node,
}

// SAFETY: the pointers are used under the lock.
unsafe impl Send for Queue {}

/// One that waits, on its own stack. In the queue until it is taken out, under the lock; from then
/// on nobody but its owner uses it.
struct Node {
    waiter: Cell<Option<Waiter>>,
    next: Cell<*const Node>,
    outcome: Cell<Taken>,
}

// SAFETY: the cells are touched under the lock, or by the owner before and after it is in the queue.
unsafe impl Sync for Node {}

/// What asking for a turn comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is the caller's, and was nobody's before.
    AtOnce,
    /// It is the caller's now. Who had it before may have left something in the file.
    AfterAnother,
    /// Not yet: the deadline, or the file, has changed.
    LookAgain,
    /// The time is over, or it was cancelled.
    TooLate,
}

impl Turn {
    crate::rt::const_unless_modelled! {
        pub(crate) fn new() -> Turn {
            Turn { queue: Lock::new(Queue { taken: false, first: ptr::null(), last: ptr::null() }) }
        }
    }

    /// Takes the turn, waiting for it until `deadline`, or until it is cancelled.
    pub(crate) fn take(
        &self,
        deadline: Option<Instant>,
        cancellation: Option<&Cancellation>,
    ) -> Taken {
        if self.try_take() {
            return Taken::AtOnce;
        }
        self.take_contended(deadline, cancellation)
    }

    fn try_take(&self) -> bool {
        let _critical = Critical::enter();
        !std::mem::replace(&mut self.queue.lock().taken, true)
    }

    #[cold]
    fn take_contended(
        &self,
        deadline: Option<Instant>,
        cancellation: Option<&Cancellation>,
    ) -> Taken {
        let node = Node {
            waiter: Cell::new(None),
            next: Cell::new(ptr::null()),
            outcome: Cell::new(Taken::TooLate),
        };
        let commit = |waiter: Waiter| {
            let mut queue = self.queue.lock();
            if !std::mem::replace(&mut queue.taken, true) {
                node.outcome.set(Taken::AfterAnother);
                return false;
            }
            node.waiter.set(Some(waiter));
            queue.push(&node);
            true
        };
        // The whole node, which may be shared, not its cells.
        let node = &node;
        let expire = move || self.queue.lock().unlink(node);
        match (deadline, cancellation) {
            (None, None) => block(WaitReason::IoWait, commit),
            (Some(deadline), None) => block_until(WaitReason::IoWait, deadline, commit, expire),
            (_, Some(cancellation)) => {
                block_until_unless(WaitReason::IoWait, deadline, cancellation, commit, expire);
            }
        }
        node.outcome.get()
    }

    /// Gives the turn to the next one, if there is one.
    pub(crate) fn give(&self) {
        let critical = Critical::enter();
        let next = self.queue.lock().give();
        if let Some(waiter) = next {
            critical.wake(waiter);
        }
    }

    /// Makes all that wait for their turn look at the deadline and the file again.
    pub(crate) fn look_again(&self) {
        let critical = Critical::enter();
        let mut queue = self.queue.lock();
        while let Some(waiter) = queue.pop(Taken::LookAgain) {
            critical.wake(waiter);
        }
    }
}

impl Queue {
    fn give(&mut self) -> Option<Waiter> {
        let next = self.pop(Taken::AfterAnother);
        self.taken = next.is_some();
        next
    }

    fn push(&mut self, node: &Node) {
        // SAFETY: in the queue, so its owner waits.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first = node,
        }
        self.last = node;
    }

    fn pop(&mut self, outcome: Taken) -> Option<Waiter> {
        // SAFETY: as in `push`.
        let node = unsafe { self.first.as_ref() }?;
        self.first = node.next.get();
        if self.first.is_null() {
            self.last = ptr::null();
        }
        node.outcome.set(outcome);
        node.waiter.get()
    }

    /// Takes `node` out. False: it isn't in any more.
    fn unlink(&mut self, node: &Node) -> bool {
        let (mut before, mut at) = (ptr::null::<Node>(), self.first);
        // SAFETY: as in `push`, for all of the queue.
        while let Some(here) = unsafe { at.as_ref() } {
            if ptr::eq(here, node) {
                // SAFETY: as above; null for the first one.
                match unsafe { before.as_ref() } {
                    Some(before) => before.next.set(here.next.get()),
                    None => self.first = here.next.get(),
                }
                if ptr::eq(self.last, node) {
                    self.last = before;
                }
                return true;
            }
            (before, at) = (at, here.next.get());
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
#[path = "turn/tests.rs"]
mod tests;
