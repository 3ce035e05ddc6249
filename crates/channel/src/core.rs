//! The part of a channel that does not depend on what it carries: its counts and queues, and how
//! one waits in them.
//!
//! Invariants, whenever the lock is free
//! * I1. `len + rooms_promised <= capacity` and `messages_promised <= len`. Promises are made to
//!   selects, which move their value later.
//! * I2. Receivers wait only while no message is available, senders only while there is no room.
//!   Both wait at once only if every message or every room is promised.
//! * I3. Once the channel is closed nobody begins to wait, and when its closer has returned nobody
//!   waits any more. Only receivers are woken after the lock was free: nothing comes that they could
//!   be given, so it makes no difference to others.

use crate::node::{Node, NodeRef, Outcome, Race};
use crate::profile;
use crate::queue::{Queue, Wakes};
use crate::rt::{Critical, Lock, LockGuard, Stride, WaitReason};
use crate::select::Token;
use std::time::{Duration, Instant};

/// Sender's or receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

/// How long an operation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    Until(Instant),
    Endless,
}

impl Patience {
    /// At most for `timeout`; endless if that is beyond the clock.
    pub(crate) fn timeout(timeout: Duration) -> Patience {
        Instant::now().checked_add(timeout).map_or(Patience::Endless, Patience::Until)
    }

    /// Whether a wait would not begin.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        match self {
            Patience::None => true,
            Patience::Until(deadline) => Instant::now() >= deadline,
            Patience::Endless => false,
        }
    }

    /// The nearer end of `self` and `other`.
    pub(crate) fn until(self, other: Option<Instant>) -> Patience {
        match (self, other) {
            (patience, None) => patience,
            (Patience::None, _) => Patience::None,
            (Patience::Until(one), Some(other)) => Patience::Until(one.min(other)),
            (Patience::Endless, Some(other)) => Patience::Until(other),
        }
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Until(deadline) => Some(deadline),
            Patience::None | Patience::Endless => None,
        }
    }
}

/// A channel's counts and queues, behind its lock.
pub(crate) struct Core {
    state: Lock<State>,
    /// `usize::MAX` without a bound, 0 without a buffer.
    capacity: usize,
    /// A checker explores the same steps again and again, where addresses are not the same.
    #[cfg(loom)]
    number: usize,
}

pub(crate) type Guard<'a> = LockGuard<'a, State>;

pub(crate) struct State {
    capacity: usize,
    /// Messages in the store.
    pub(crate) len: usize,
    /// Of these, kept for selects that were told to receive.
    pub(crate) messages_promised: usize,
    /// Room kept for selects that were told to send.
    pub(crate) rooms_promised: usize,
    pub(crate) is_closed: bool,
    pub(crate) senders: Queue,
    pub(crate) receivers: Queue,
    /// Those who wait until sending, or receiving, would not block, and do neither.
    pub(crate) send_watchers: Queue,
    pub(crate) receive_watchers: Queue,
}

// SAFETY: the nodes that the queues name are used under the lock or by who claimed them (I2 of
// `node`), on any thread.
unsafe impl Send for State {}

impl State {
    /// Messages that anyone may take.
    #[inline]
    pub(crate) fn available(&self) -> usize {
        self.len - self.messages_promised
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.len + self.rooms_promised < self.capacity
    }

    pub(crate) fn queue(&mut self, side: Side) -> &mut Queue {
        match side {
            Side::Send => &mut self.senders,
            Side::Receive => &mut self.receivers,
        }
    }

    pub(crate) fn watchers(&mut self, side: Side) -> &mut Queue {
        match side {
            Side::Send => &mut self.send_watchers,
            Side::Receive => &mut self.receive_watchers,
        }
    }

    /// An operation of that side would block. If not, it may still: who waits may be taken.
    #[inline(always)]
    pub(crate) fn is_idle(&self, side: Side) -> bool {
        !self.is_closed
            && match side {
                Side::Send => !self.has_room() && self.receivers.is_empty(),
                Side::Receive => self.available() == 0 && self.senders.is_empty(),
            }
    }

    /// Whether an operation of that side would not block.
    pub(crate) fn is_ready(&mut self, side: Side) -> bool {
        self.is_closed
            || match (side, self.capacity) {
                (Side::Send, 0) => self.receivers.first_open().is_some(),
                (Side::Receive, 0) => self.senders.first_open().is_some(),
                (Side::Send, _) => self.has_room(),
                (Side::Receive, _) => self.available() > 0,
            }
    }

    /// What a select is told if an operation of that side would not block.
    pub(crate) fn promise(&mut self, side: Side) -> Option<Token> {
        match side {
            Side::Send if self.is_closed => Some(Token::Closed),
            Side::Send if self.capacity == 0 => self.receivers.pop().map(Token::of_partner),
            Side::Send if self.has_room() => {
                self.rooms_promised += 1;
                Some(Token::Promised)
            }
            Side::Receive if self.available() > 0 => {
                self.messages_promised += 1;
                Some(Token::Promised)
            }
            Side::Receive if self.is_closed => Some(Token::Closed),
            Side::Receive if self.capacity == 0 => self.senders.pop().map(Token::of_partner),
            Side::Send | Side::Receive => None,
        }
    }

    /// On a channel without a buffer a waiter makes the other side ready.
    pub(crate) fn wake_watchers_of_waiter(&mut self, side: Side, critical: &Critical) {
        let other = match side {
            Side::Send => &mut self.receive_watchers,
            Side::Receive => &mut self.send_watchers,
        };
        if self.capacity == 0 && !other.is_empty() {
            let mut wakes = Wakes::new();
            wakes.push_all(other);
            wakes.wake(critical);
        }
    }
}

impl Core {
    pub(crate) fn new(capacity: usize) -> Core {
        let state = State {
            capacity,
            len: 0,
            messages_promised: 0,
            rooms_promised: 0,
            is_closed: false,
            senders: Queue::new(),
            receivers: Queue::new(),
            send_watchers: Queue::new(),
            receive_watchers: Queue::new(),
        };
        Core {
            state: Lock::new(state),
            capacity,
            #[cfg(loom)]
            number: crate::rt::next_number(),
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Its lock's place in the order of locks; not 0.
    #[cfg(not(loom))]
    pub(crate) fn lock_order(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[cfg(loom)]
    pub(crate) fn lock_order(&self) -> usize {
        self.number
    }

    /// To be called, and the guard dropped, within a [`Critical`].
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock()
    }

    /// As [`lock`](Core::lock), if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        self.state.try_lock()
    }

    /// Ends sending. False if it had ended before.
    ///
    /// Of many receivers each portion is told under the lock and woken after it; the caller may be
    /// preempted in between. The last one is told before this returns.
    pub(crate) fn close(&self) -> bool {
        let critical = Critical::enter();
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        state.is_closed = true;
        let mut wakes = Wakes::new();
        let mut ahead = Stride::new();
        let mut are_more = state.receivers.end_some(&mut wakes, &mut ahead);
        wakes.push_all(&mut state.receive_watchers);
        while let Some(node) = state.senders.pop() {
            node.settle(Outcome::Closed);
            wakes.push(node);
        }
        wakes.push_all(&mut state.send_watchers);
        drop(state);
        wakes.wake(&critical);
        drop(critical);
        while are_more {
            are_more = self.end_more(&mut ahead);
        }
        true
    }

    /// Tells the next receivers of a closed channel, and wakes them. False if none was left.
    #[cold]
    fn end_more(&self, ahead: &mut Stride) -> bool {
        let critical = Critical::enter();
        let mut state = self.lock();
        let mut wakes = Wakes::new();
        let are_more = state.receivers.end_some(&mut wakes, ahead);
        drop(state);
        wakes.wake(&critical);
        are_more
    }

    /// Waits in the queue of `side`, with the value's place at `slot`. `Waiting` comes back when
    /// the time was over.
    pub(crate) fn wait(
        &self,
        critical: Critical,
        mut state: Guard<'_>,
        side: Side,
        slot: *mut (),
        patience: Patience,
    ) -> Outcome {
        let deadline = patience.deadline();
        let race = Race::new(deadline.is_some());
        let node = Node::new(slot);
        node.enter(&race);
        // SAFETY: this frame stays until a waker has taken the node out of the queue, or it has
        // expired and `forget_waiter` has.
        let me = unsafe { NodeRef::new(&node) };
        state.queue(side).push(me);
        state.wake_watchers_of_waiter(side, &critical);
        let commit = |waiter| {
            race.set_waiter(waiter);
            drop(state);
            true
        };
        profile::timed(side.reason(), || match deadline {
            None => critical.block(side.reason(), commit),
            Some(deadline) => {
                critical.block_until(side.reason(), deadline, commit, || race.expire());
                if race.is_expired() {
                    self.forget_waiter(side, me);
                }
            }
        });
        node.outcome()
    }

    #[cold]
    fn forget_waiter(&self, side: Side, node: NodeRef) {
        let _critical = Critical::enter();
        let mut state = self.lock();
        if node.is_queued.get() {
            state.queue(side).remove(node);
        }
    }

    /// Gives `slot` to `select`, which was claimed, and waits until it has moved the value.
    ///
    /// The lock is held from before the wake until the caller is suspended, so that the select
    /// finds a waiter to wake.
    #[cold]
    pub(crate) fn meet(
        &self,
        critical: Critical,
        state: Guard<'_>,
        side: Side,
        select: NodeRef,
        slot: *mut (),
    ) -> Outcome {
        let race = Race::new(false);
        let node = Node::new(slot);
        node.enter(&race);
        // SAFETY: this frame stays until the select has settled the node.
        select.settle(Outcome::Partner(unsafe { NodeRef::new(&node) }));
        critical.wake(select.waiter());
        critical.block(side.reason(), |waiter| {
            race.set_waiter(waiter);
            drop(state);
            true
        });
        node.outcome()
    }

    /// Wakes all who wait to receive: what they wait for has changed.
    pub(crate) fn make_look_again(&self) {
        let critical = Critical::enter();
        let mut state = self.lock();
        let mut wakes = Wakes::new();
        while let Some(node) = state.receivers.pop() {
            node.settle(Outcome::Retry);
            wakes.push(node);
        }
        while let Some(node) = state.receive_watchers.pop() {
            node.settle(Outcome::Retry);
            wakes.push(node);
        }
        drop(state);
        wakes.wake(&critical);
    }

    /// Tells a claimed waiter how its wait ended, and wakes it.
    pub(crate) fn settle_and_wake(&self, node: NodeRef, outcome: Outcome) {
        let critical = Critical::enter();
        // A partner's node is ready to be woken once its owner has let go of the lock.
        let state = self.lock();
        node.settle(outcome);
        drop(state);
        critical.wake(node.waiter());
    }
}

impl Side {
    pub(crate) fn reason(self) -> WaitReason {
        match self {
            Side::Send => WaitReason::ChanSend,
            Side::Receive => WaitReason::ChanReceive,
        }
    }
}
