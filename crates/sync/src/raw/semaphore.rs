//! A counting semaphore: one word, and a queue for those who wait.
//!
//! First come, first served: permits go straight to the waiter that is first as soon as there are
//! enough for it, and nobody overtakes, so that one who wants many is not starved by those who want
//! few. (As Go's `semaphore.Weighted`.)
//!
//! Word: WAITING in the lowest bit, the free permits above. WAITING changes under the queue's lock
//! only, and while it is set permits are taken under that lock only.

use crate::node::{Node, Outcome, Patience, Waited, Wish};
use crate::profile;
use crate::queue::{Queue, Waiters, Wakes};
use crate::rt::{AtomicUsize, Critical, WaitReason, const_unless_modelled, now_ns};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const WAITING: usize = 1;
const ONE_PERMIT: usize = 2;

/// The most permits that there can be.
pub(crate) const MAX_PERMITS: usize = usize::MAX >> 2;

/// Permits without guards.
pub(crate) struct RawSemaphore {
    word: AtomicUsize,
    waiters: Waiters,
}

impl RawSemaphore {
    const_unless_modelled! {
        pub(crate) fn new(permits: usize) -> RawSemaphore {
            assert!(permits <= MAX_PERMITS, "Semaphore::new: too many permits");
            RawSemaphore {
                word: AtomicUsize::new(permits * ONE_PERMIT),
                waiters: Waiters::new(),
            }
        }
    }

    /// Permits that nobody has.
    pub(crate) fn free(&self) -> usize {
        // ORDERING: Relaxed; a hint.
        self.word.load(Relaxed) / ONE_PERMIT
    }

    /// Takes `permits` if they are there and nobody waits.
    #[inline]
    pub(crate) fn try_acquire(&self, permits: usize) -> bool {
        // ORDERING: Relaxed; the exchange acquires.
        let mut word = self.word.load(Relaxed);
        while word & WAITING == 0 && word >= permits * ONE_PERMIT {
            let new = word - permits * ONE_PERMIT;
            // ORDERING: Acquire pairs with `release`; what came before it is visible.
            match self.word.compare_exchange(word, new, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// False: the wait ended first.
    #[inline]
    pub(crate) fn acquire(&self, permits: usize, patience: Patience<'_>) -> bool {
        self.try_acquire(permits) || self.acquire_contended(permits, patience)
    }

    #[cold]
    fn acquire_contended(&self, permits: usize, patience: Patience<'_>) -> bool {
        let since = if profile::is_on() { now_ns() } else { 0 };
        let node = Node::new(Wish::Permits(permits), since);
        if self.take_or_queue(&node, permits) {
            return true;
        }
        match self.waiters.wait(&node, WaitReason::SemAcquire, patience) {
            Waited::Claimed(_) => true,
            Waited::Ended => {
                // Those behind may want less.
                self.settle();
                false
            }
        }
    }

    fn take_or_queue(&self, node: &Node, permits: usize) -> bool {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        // ORDERING: Relaxed; the exchange decides.
        let mut word = self.word.load(Relaxed);
        loop {
            let takes = word & WAITING == 0 && word >= permits * ONE_PERMIT;
            let new = if takes { word - permits * ONE_PERMIT } else { word | WAITING };
            // ORDERING: Acquire as in `try_acquire`; Release pairs with `release`, which then
            // settles.
            match self.word.compare_exchange(word, new, AcqRel, Relaxed) {
                Ok(_) if takes => return true,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // SAFETY: it stays on the caller's stack until `Waiters::wait` has returned.
        unsafe { queue.push_back(node) };
        false
    }

    /// Gives permits back.
    #[inline]
    pub(crate) fn release(&self, permits: usize) {
        // ORDERING: Release pairs with `try_acquire` and `settle`; Acquire with `take_or_queue`.
        let word = self.word.fetch_add(permits * ONE_PERMIT, AcqRel);
        if word & WAITING != 0 {
            self.settle();
        }
    }

    /// Serves those who wait, as far as the permits go.
    #[cold]
    fn settle(&self) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        let waited = queue.waited();
        let mut wakes = Wakes::new();
        while let Some(first) = queue.first() {
            let Wish::Permits(permits) = first.wish else { break };
            if !self.take_for_waiter(permits) {
                break;
            }
            if !queue.claim(first, Outcome::Granted, &mut wakes) {
                // ORDERING: Release pairs with `try_acquire`: they go back.
                self.word.fetch_add(permits * ONE_PERMIT, Release);
            }
        }
        self.publish(&mut queue);
        drop(queue);
        let woke = !wakes.is_empty();
        wakes.wake(critical);
        if woke {
            profile::released(WaitReason::SemAcquire, waited);
        }
    }

    /// Under the queue's lock, with WAITING set: nobody else takes any.
    fn take_for_waiter(&self, permits: usize) -> bool {
        // ORDERING: Relaxed; only `release` changes it meanwhile, upwards.
        if self.word.load(Relaxed) < permits * ONE_PERMIT {
            return false;
        }
        // ORDERING: Acquire as in `try_acquire`, for the waiter; its wake carries it on.
        self.word.fetch_sub(permits * ONE_PERMIT, Acquire);
        true
    }

    fn publish(&self, queue: &mut Queue) {
        if queue.first().is_none() {
            // ORDERING: Relaxed; under the lock.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }
}
