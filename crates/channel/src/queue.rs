//! A FIFO of waiters, linked through their nodes. Used under its channel's lock.

use crate::node::{NodeRef, Outcome};
use crate::rt::{Critical, Stride, prefetch};

/// Who waits, the longest first.
pub(crate) struct Queue {
    first: Option<NodeRef>,
    last: Option<NodeRef>,
}

impl Queue {
    pub(crate) const fn new() -> Queue {
        Queue { first: None, last: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn push(&mut self, node: NodeRef) {
        node.next.set(None);
        node.prev.set(self.last);
        node.is_queued.set(true);
        match self.last.replace(node) {
            Some(last) => last.next.set(Some(node)),
            None => self.first = Some(node),
        }
    }

    pub(crate) fn remove(&mut self, node: NodeRef) {
        let (next, prev) = (node.next.get(), node.prev.get());
        match prev {
            Some(prev) => prev.next.set(next),
            None => self.first = next,
        }
        match next {
            Some(next) => next.prev.set(prev),
            None => self.last = prev,
        }
        node.is_queued.set(false);
    }

    /// Claims the first one that can be claimed. Those before it were won by others, who wake them.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NodeRef> {
        while let Some(node) = self.first {
            self.remove(node);
            if node.claim() {
                return Some(node);
            }
        }
        None
    }

    /// Claims the first ones, at most [`PORTION`], and tells them that the channel is closed. Whether
    /// some are left.
    pub(crate) fn end_some(&mut self, wakes: &mut Wakes, ahead: &mut Stride) -> bool {
        for _ in 0..PORTION {
            let Some(node) = self.pop() else { return false };
            if let Some(stride) = ahead.passes(node.address()) {
                prefetch(node.address().wrapping_add(stride));
                prefetch(node.race_address().wrapping_add(stride));
            }
            node.settle(Outcome::Closed);
            wakes.push(node);
        }
        !self.is_empty()
    }

    /// The first one whose claim may succeed.
    #[inline]
    pub(crate) fn first_open(&mut self) -> Option<NodeRef> {
        while let Some(node) = self.first {
            if node.is_open() {
                return Some(node);
            }
            self.remove(node);
        }
        None
    }
}

/// How many are woken at a time when all are: their lines are still in the cache then, and the one
/// who wakes a million can be preempted.
const PORTION: usize = if cfg!(loom) { 1 } else { 64 };

/// Waiters that were claimed and are to be woken once the lock is free, in order.
#[derive(Default)]
#[must_use]
pub(crate) struct Wakes {
    first: Option<NodeRef>,
    last: Option<NodeRef>,
}

impl Wakes {
    pub(crate) const fn new() -> Wakes {
        Wakes { first: None, last: None }
    }

    #[inline]
    pub(crate) fn push(&mut self, claimed: NodeRef) {
        claimed.next.set(None);
        match self.last.replace(claimed) {
            Some(last) => last.next.set(Some(claimed)),
            None => self.first = Some(claimed),
        }
    }

    /// Everyone in `queue`.
    #[cold]
    pub(crate) fn push_all(&mut self, queue: &mut Queue) {
        while let Some(node) = queue.pop() {
            self.push(node);
        }
    }

    #[inline]
    pub(crate) fn wake(self, critical: &Critical) {
        let mut next = self.first;
        while let Some(node) = next {
            // Its frame may be gone once it is awake.
            next = node.next.get();
            critical.wake(node.waiter());
        }
    }
}
