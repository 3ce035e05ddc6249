//! A list of waiters, linked through their nodes, behind a lock of its own.

use crate::node::{Claim, Node, NodeRef, Outcome, Patience, Waited, Wish};
use crate::profile;
use crate::rt::{Critical, Lock, LockGuard, WaitReason, const_unless_modelled, now_ns};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// Who waits for one thing.
pub(crate) struct Waiters {
    queue: Lock<Queue>,
}

/// Who waits, the next to be woken first.
pub(crate) struct Queue {
    first: Option<NodeRef>,
    last: Option<NodeRef>,
    len: usize,
    /// How many of them wish for a share.
    pub(crate) shared: usize,
}

// SAFETY: the nodes that the queue names are used under the lock or by who claimed them (I2 of
// `node`), on any thread.
unsafe impl Send for Queue {}

// Nothing panics while it is changed.
impl UnwindSafe for Waiters {}
impl RefUnwindSafe for Waiters {}

impl Waiters {
    const_unless_modelled! {
        pub(crate) fn new() -> Waiters {
            Waiters { queue: Lock::new(Queue { first: None, last: None, len: 0, shared: 0 }) }
        }
    }

    /// The queue's lock. The [`Critical`] says that the caller is inside the runtime.
    #[inline]
    pub(crate) fn lock(&self, _: &Critical) -> LockGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Waits with `node`, which was queued here. If the wait ends early the node is taken out.
    pub(crate) fn wait(&self, node: &Node, reason: WaitReason, patience: Patience<'_>) -> Waited {
        let waited = node.wait(reason, patience);
        if waited == Waited::Ended {
            self.forget(node);
        }
        waited
    }

    /// Takes a node out whose wait has ended.
    #[cold]
    fn forget(&self, node: &Node) {
        let critical = Critical::enter();
        let mut queue = self.lock(&critical);
        if node.is_queued.get() {
            // SAFETY: its owner is the caller, who is here.
            queue.remove(unsafe { NodeRef::new(node) });
        }
    }

    /// Claims everyone and wakes them, in order.
    pub(crate) fn wake_all(&self) {
        let critical = Critical::enter();
        let queue = self.lock(&critical);
        Waiters::wake_all_of(queue, critical);
    }

    /// As [`wake_all`](Waiters::wake_all), with the lock held; lets go of it.
    pub(crate) fn wake_all_of(mut queue: LockGuard<'_, Queue>, critical: Critical) {
        let mut wakes = Wakes::new();
        while let Some(node) = queue.first() {
            queue.claim(node, Outcome::Woken, &mut wakes);
        }
        drop(queue);
        wakes.wake(critical);
    }
}

impl Queue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many wait, with those whose wait has just ended.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a node behind all others.
    ///
    /// # Safety
    /// * `node` stays where it is until it was claimed, or taken out by [`Waiters::wait`].
    pub(crate) unsafe fn push_back(&mut self, node: &Node) {
        // SAFETY: by the caller.
        let node = unsafe { NodeRef::new(node) };
        node.next.set(None);
        node.prev.set(self.last);
        match self.last.replace(node) {
            Some(last) => last.next.set(Some(node)),
            None => self.first = Some(node),
        }
        self.entered(node);
    }

    /// Adds a node before all others.
    ///
    /// # Safety
    /// * As for [`push_back`](Queue::push_back).
    pub(crate) unsafe fn push_front(&mut self, node: &Node) {
        // SAFETY: by the caller.
        let node = unsafe { NodeRef::new(node) };
        node.prev.set(None);
        node.next.set(self.first);
        match self.first.replace(node) {
            Some(first) => first.prev.set(Some(node)),
            None => self.last = Some(node),
        }
        self.entered(node);
    }

    fn entered(&mut self, node: NodeRef) {
        node.is_queued.set(true);
        self.len += 1;
        self.shared += usize::from(node.wish == Wish::Shared);
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
        self.len -= 1;
        self.shared -= usize::from(node.wish == Wish::Shared);
    }

    /// The first one whose claim may succeed; those before it have ended and are taken out.
    pub(crate) fn first(&mut self) -> Option<NodeRef> {
        while let Some(node) = self.first {
            if node.is_open() {
                return Some(node);
            }
            self.remove(node);
        }
        None
    }

    /// Takes `node` out and claims it. False if its wait has ended.
    pub(crate) fn claim(&mut self, node: NodeRef, outcome: Outcome, wakes: &mut Wakes) -> bool {
        self.remove(node);
        match node.claim(outcome) {
            Claim::Owed => wakes.push(node),
            Claim::Early => {}
            Claim::Lost => return false,
        }
        true
    }

    /// Claims all who wish for a share; `admit` is called before each, `reject` after a claim that
    /// failed. False if all did.
    pub(crate) fn claim_shared(
        &mut self,
        outcome: Outcome,
        wakes: &mut Wakes,
        admit: impl Fn(),
        reject: impl Fn(),
    ) -> bool {
        let mut next = self.first;
        let mut is_any_claimed = false;
        while let Some(node) = next {
            // Once claimed it may be gone.
            next = node.next.get();
            if node.wish == Wish::Shared {
                admit();
                if self.claim(node, outcome, wakes) {
                    is_any_claimed = true;
                } else {
                    reject();
                }
            }
        }
        is_any_claimed
    }

    /// How long all of them have waited, roughly, if a profile wants to know: that of the first,
    /// and for each other the mean of the first and the last (as Go's mutex profile).
    pub(crate) fn waited(&self) -> Option<u64> {
        let (first, last) = (self.first?, self.last?);
        if !profile::is_on() || first.since == 0 {
            return None;
        }
        let now = now_ns();
        let (first, last) = (now.saturating_sub(first.since), now.saturating_sub(last.since));
        Some(first.saturating_add((first / 2 + last / 2).saturating_mul(self.len as u64 - 1)))
    }
}

/// Waiters that were claimed and are to be woken once the lock is free, in order.
#[must_use]
pub(crate) struct Wakes {
    first: Option<NodeRef>,
    last: Option<NodeRef>,
}

impl Wakes {
    pub(crate) const fn new() -> Wakes {
        Wakes { first: None, last: None }
    }

    fn push(&mut self, claimed: NodeRef) {
        claimed.next.set(None);
        match self.last.replace(claimed) {
            Some(last) => last.next.set(Some(claimed)),
            None => self.first = Some(claimed),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Wakes them. The first few inside the runtime, the rest one by one, since there may be many.
    pub(crate) fn wake(self, critical: Critical) {
        const AT_ONCE: usize = 8;
        let mut next = self.first;
        for _ in 0..AT_ONCE {
            let Some(node) = next else { return };
            // Its frame may be gone once it is awake.
            next = node.next.get();
            if let Some(waiter) = node.waiter() {
                critical.wake(waiter);
            }
        }
        drop(critical);
        while let Some(node) = next {
            next = node.next.get();
            if let Some(waiter) = node.waiter() {
                waiter.wake();
            }
        }
    }
}
