//! The waiter's record, on the stack of whoever waits.
//!
//! Its state says who has it:
//!
//! ```text
//!   NEW --commit--> waiter --claim--> CLAIMED   (the claimer wakes the waiter)
//!    |                `------end----> ENDED     (a timer or a cancellation does)
//!    `------claim-----------------> CLAIMED     (the owner has not slept yet, and finds it)
//! ```
//!
//! So a node is queued under its lock, and its owner goes to sleep later, without it: whoever
//! claims the node in between is noticed by the commit.
//!
//! Invariants
//! * I1. A node that is in a queue, or that was claimed and not woken yet, stays where it is: its
//!   owner waits, or takes the queue's lock to unlink it before it goes. One claimed as NEW may be
//!   gone at once.
//! * I2. Links are touched under the queue's lock, or by the claimer of a waiter until its wake.
//! * I3. A node is claimed once in each wait, or ended, never both.

use crate::profile;
use crate::rt::{
    AtomicUsize, Cancellation, Cancels, Cell, Critical, WaitReason, Waiter, block_unless,
    block_until, now_ns,
};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

const NEW: usize = 0;
const CLAIMED: usize = 1;
const ENDED: usize = 2;
/// Waiters are addresses of aligned objects, perhaps tagged in the lowest bit.
const LOWEST_WAITER: usize = 8;

/// One place in one queue.
pub(crate) struct Node {
    state: AtomicUsize,
    pub(crate) next: Cell<Option<NodeRef>>,
    pub(crate) prev: Cell<Option<NodeRef>>,
    /// Whether it is in a queue. Guarded by: the queue's lock.
    pub(crate) is_queued: Cell<bool>,
    /// Written by: the claimer. Read by: the claimer, later.
    waiter: Cell<Option<Waiter>>,
    outcome: Cell<Outcome>,
    /// What it waits for.
    pub(crate) wish: Wish,
    /// When it began to wait, in nanoseconds; 0 if nobody asks.
    pub(crate) since: u64,
}

/// What a waiter wants of its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To have it alone, or to hear of an event.
    Whole,
    /// To share it with others.
    Shared,
    /// So many permits.
    Permits(usize),
}

/// What the claimer did for the waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Said that it may try again, or that the event has come.
    Woken,
    /// Gave it what it wished.
    Granted,
}

/// How a wait ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Claimed(Outcome),
    /// The time was over, or the context was cancelled. The node may still be queued.
    Ended,
}

/// What a claim came to.
#[must_use]
pub(crate) enum Claim {
    /// The claimer owes the waiter a wake.
    Owed,
    /// The owner has not slept yet, and will not.
    Early,
    /// Its wait has ended.
    Lost,
}

/// How long a wait lasts.
#[derive(Clone, Copy)]
pub(crate) enum Patience<'a> {
    Endless,
    Until(Instant),
    Unless(&'a Cancellation),
}

impl Patience<'_> {
    /// At most for `timeout`; endless if that is beyond the clock.
    pub(crate) fn timeout(timeout: Duration) -> Patience<'static> {
        Instant::now().checked_add(timeout).map_or(Patience::Endless, Patience::Until)
    }

    /// Until `ctx` is cancelled; `None` if it is already.
    pub(crate) fn unless<C: Cancels + ?Sized>(ctx: &C) -> Option<Patience<'_>> {
        match ctx.cancellation() {
            None => Some(Patience::Endless),
            Some(cancellation) if cancellation.is_cancelled() => None,
            Some(cancellation) => Some(Patience::Unless(cancellation)),
        }
    }
}

impl Node {
    pub(crate) fn new(wish: Wish, since: u64) -> Node {
        Node {
            state: AtomicUsize::new(NEW),
            next: Cell::new(None),
            prev: Cell::new(None),
            is_queued: Cell::new(false),
            waiter: Cell::new(None),
            outcome: Cell::new(Outcome::Woken),
            wish,
            since,
        }
    }

    /// Makes it fit for another wait. Its owner, after a wait that was claimed.
    pub(crate) fn renew(&self) {
        // ORDERING: Relaxed; the queue's lock publishes it.
        self.state.store(NEW, Relaxed);
    }

    /// Waits until it is claimed, once it was queued. The owner.
    pub(crate) fn wait(&self, reason: WaitReason, patience: Patience<'_>) -> Waited {
        if !profile::is_on() {
            return self.wait_now(reason, patience);
        }
        let start = now_ns();
        let waited = self.wait_now(reason, patience);
        profile::waited(reason, now_ns().saturating_sub(start));
        waited
    }

    fn wait_now(&self, reason: WaitReason, patience: Patience<'_>) -> Waited {
        let state = &self.state;
        let commit = |waiter: Waiter| {
            // ORDERING: Release pairs with `claim`; makes the suspended waiter visible. Acquire on
            // failure pairs with `claim` too; makes the outcome visible.
            state.compare_exchange(NEW, waiter.into_word().get(), Release, Acquire).is_ok()
        };
        match patience {
            Patience::Endless => Critical::enter().block(reason, commit),
            Patience::Until(deadline) => block_until(reason, deadline, commit, || end(state)),
            Patience::Unless(cancellation) => {
                block_unless(reason, cancellation, commit, || end(state));
            }
        }
        // ORDERING: Acquire pairs with `claim`; makes the outcome visible.
        match state.load(Acquire) {
            CLAIMED => Waited::Claimed(self.outcome.get()),
            _ => Waited::Ended,
        }
    }

    /// Takes the waiter for the caller, who tells it the outcome. Under the queue's lock.
    pub(crate) fn claim(&self, outcome: Outcome) -> Claim {
        self.outcome.set(outcome);
        // ORDERING: Relaxed; the exchange below decides.
        let mut state = self.state.load(Relaxed);
        while state != ENDED {
            // ORDERING: Release pairs with `wait_now`; makes the outcome visible. Acquire pairs
            // with its commit; makes the suspended waiter visible.
            match self.state.compare_exchange(state, CLAIMED, AcqRel, Relaxed) {
                Ok(NEW) => return Claim::Early,
                Ok(waiter) => {
                    // SAFETY: only commits store such words, of waiters.
                    let waiter = NonZeroUsize::new(waiter).map(|w| unsafe { Waiter::from_word(w) });
                    self.waiter.set(waiter);
                    return Claim::Owed;
                }
                Err(now) => state = now,
            }
        }
        Claim::Lost
    }

    /// Whether a claim could succeed. Under the queue's lock.
    pub(crate) fn is_open(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.state.load(Relaxed) != ENDED
    }

    /// Who waits. For the one who has claimed it and owes the wake.
    pub(crate) fn waiter(&self) -> Option<Waiter> {
        self.waiter.get()
    }
}

/// Takes the waiter back, for whoever ends its wait.
fn end(state: &AtomicUsize) -> bool {
    // ORDERING: Relaxed; the exchange only decides. The timer's lock, or the cancellation's,
    // comes between the commit and this.
    let now = state.load(Relaxed);
    // ORDERING: Relaxed; as above.
    now >= LOWEST_WAITER && state.compare_exchange(now, ENDED, Relaxed, Relaxed).is_ok()
}

/// A node in a queue, or claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeRef(NonNull<Node>);

impl NodeRef {
    /// # Safety
    /// * The caller keeps I1 for `node`.
    pub(crate) unsafe fn new(node: &Node) -> NodeRef {
        NodeRef(NonNull::from(node))
    }
}

impl Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: I1: it stays where it is while anybody may use this.
        unsafe { self.0.as_ref() }
    }
}
