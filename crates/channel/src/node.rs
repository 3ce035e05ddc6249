//! The waiter's record, on the stack of whoever waits.
//!
//! Invariants
//! * I1. A node that is in a queue, or that was claimed and not woken yet, stays where it is: its
//!   owner waits, or takes every queue's lock to unlink it before it goes.
//! * I2. A node's links, slot and outcome are touched under its channel's lock, or by the one who
//!   claimed it.
//! * I3. A race has one winner: a waker, by the address of the node it found, or the timer.

use crate::rt::{AtomicUsize, Cell, Ordering::Relaxed, Waiter, rt_abort};
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// One place in one queue.
pub(crate) struct Node {
    pub(crate) next: Cell<Option<NodeRef>>,
    pub(crate) prev: Cell<Option<NodeRef>>,
    /// Whether it is in a queue. Guarded by: the channel's lock.
    pub(crate) is_queued: Cell<bool>,
    /// Written by: its owner, before it is queued.
    race: Cell<*const Race>,
    /// Where the value is or goes; null in a select that has no place for it.
    slot: *mut (),
    outcome: Cell<Outcome>,
}

/// What the waker did, or wants done.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// Nobody has come.
    Waiting,
    /// The value was moved.
    Done,
    /// The channel was closed.
    Closed,
    /// A message, or room for one, is kept for this select.
    Promised,
    /// This select shall move the value out of, or into, that one's slot.
    Partner(NodeRef),
    /// The partner withdrew, or what was waited for has changed: look again.
    Retry,
}

/// Which of several possible wakers has the waiter.
pub(crate) struct Race {
    /// 0, 1 if the timer won, or the address of the node that was claimed.
    winner: AtomicUsize,
    /// Whether there may be several: in a select, or with a deadline.
    is_contested: bool,
    /// Written by: the commit, before the locks are free. Read by: the winner.
    waiter: Cell<Option<Waiter>>,
}

const OPEN: usize = 0;
const EXPIRED: usize = 1;

// SAFETY: `waiter` is written before the first waker can find the race, and only read then.
unsafe impl Sync for Race {}

impl Race {
    pub(crate) fn new(is_contested: bool) -> Race {
        Race { winner: AtomicUsize::new(OPEN), is_contested, waiter: Cell::new(None) }
    }

    pub(crate) fn set_waiter(&self, waiter: Waiter) {
        self.waiter.set(Some(waiter));
    }

    fn win(&self, winner: usize) -> bool {
        // ORDERING: Relaxed; the exchange only decides. What the winner writes is published by its
        // wake, what it reads by the lock of the queue in which it found the node.
        self.winner.compare_exchange(OPEN, winner, Relaxed, Relaxed).is_ok()
    }

    /// The timer's try.
    pub(crate) fn expire(&self) -> bool {
        self.win(EXPIRED)
    }

    pub(crate) fn is_expired(&self) -> bool {
        // ORDERING: Relaxed; read by the waiter once it was woken.
        self.winner.load(Relaxed) == EXPIRED
    }

    /// Whether `node` is the one that was claimed. For the waiter once it was woken.
    pub(crate) fn was_won_by(&self, node: &Node) -> bool {
        // ORDERING: Relaxed, as in `is_expired`.
        self.winner.load(Relaxed) == ptr::from_ref(node).addr()
    }
}

impl Node {
    pub(crate) fn new(slot: *mut ()) -> Node {
        Node {
            next: Cell::new(None),
            prev: Cell::new(None),
            is_queued: Cell::new(false),
            race: Cell::new(ptr::null()),
            slot,
            outcome: Cell::new(Outcome::Waiting),
        }
    }

    /// Enters `race`, which outlives the node's time in queues.
    pub(crate) fn enter(&self, race: &Race) {
        self.race.set(race);
        self.outcome.set(Outcome::Waiting);
    }

    fn race(&self) -> &Race {
        // SAFETY: `enter` came before the node was queued, and by its word the race is there.
        unsafe { &*self.race.get() }
    }

    /// Where its race lies, on the same stack.
    pub(crate) fn race_address(&self) -> usize {
        self.race.get().addr()
    }

    /// Takes the waiter for the caller, who then owes it an outcome and a wake.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        let race = self.race();
        !race.is_contested || race.win(ptr::from_ref(self).addr())
    }

    /// Whether a claim could succeed.
    pub(crate) fn is_open(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.race().winner.load(Relaxed) == OPEN
    }

    #[inline]
    pub(crate) fn slot(&self) -> Option<NonNull<()>> {
        NonNull::new(self.slot)
    }

    #[inline]
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.get()
    }

    #[inline]
    pub(crate) fn settle(&self, outcome: Outcome) {
        self.outcome.set(outcome);
    }

    /// Who waits. For the one who claimed it.
    #[inline]
    pub(crate) fn waiter(&self) -> Waiter {
        match self.race().waiter.get() {
            Some(waiter) => waiter,
            None => rt_abort!("a waiter was claimed before it waited"),
        }
    }
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

    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
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
