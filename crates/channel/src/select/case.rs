//! One operation of a select.

use super::Token;
use crate::clock::Clock;
use crate::core::{Core, Guard, Side, State};
use crate::node::Node;
use crate::queue::Wakes;
use crate::receiver::{Flavor, Receiver};
use crate::rt::Cell;
use crate::sender::Sender;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// An end of a channel, whatever it carries.
pub(crate) trait Endpoint {
    fn side(&self) -> Side;

    /// Where it waits. `None` for what is never ready, and for clocks that can't be reset.
    fn core(&self) -> Option<&Core>;

    fn clock(&self) -> Option<&Clock>;

    /// What a select is told if the operation would not block. A message moves to `place` at once, if
    /// there is one, and its sender comes into `wakes`.
    ///
    /// # Safety
    /// * `state` is what the lock of `core` guards.
    /// * `place` has room for a message of a receive.
    unsafe fn promise(
        &self,
        state: &mut State,
        place: Option<NonNull<()>>,
        wakes: &mut Wakes,
    ) -> Option<Token>;

    /// Gives back what a select was told but does not do.
    fn abandon(&self, token: Token);
}

impl<T> Endpoint for Sender<T> {
    fn side(&self) -> Side {
        Side::Send
    }

    fn core(&self) -> Option<&Core> {
        Some(self.chan().core())
    }

    fn clock(&self) -> Option<&Clock> {
        None
    }

    unsafe fn promise(
        &self,
        state: &mut State,
        _: Option<NonNull<()>>,
        _: &mut Wakes,
    ) -> Option<Token> {
        state.promise(Side::Send)
    }

    fn abandon(&self, token: Token) {
        self.chan().abandon(Side::Send, token);
    }
}

impl<T> Endpoint for Receiver<T> {
    fn side(&self) -> Side {
        Side::Receive
    }

    fn core(&self) -> Option<&Core> {
        match &self.flavor {
            Flavor::Chan(chan) => Some(chan.core()),
            Flavor::Clock(clock, _) => clock.waiters(),
            Flavor::Never => None,
        }
    }

    fn clock(&self) -> Option<&Clock> {
        match &self.flavor {
            Flavor::Clock(clock, _) => Some(clock),
            Flavor::Chan(_) | Flavor::Never => None,
        }
    }

    unsafe fn promise(
        &self,
        state: &mut State,
        place: Option<NonNull<()>>,
        wakes: &mut Wakes,
    ) -> Option<Token> {
        match (&self.flavor, place) {
            // SAFETY: by the caller.
            (Flavor::Chan(chan), Some(place)) => unsafe { chan.deliver(state, place, wakes) },
            _ => state.promise(Side::Receive),
        }
    }

    fn abandon(&self, token: Token) {
        if let Flavor::Chan(chan) = &self.flavor {
            chan.abandon(Side::Receive, token);
        }
    }
}

/// One operation, with its waiter's record.
pub struct Case<'a> {
    pub(super) endpoint: &'a dyn Endpoint,
    pub(super) index: usize,
    pub(super) side: Side,
    pub(super) core: Option<&'a Core>,
    pub(super) clock: Option<&'a Clock>,
    /// The place of some case: in all cases together each place once, whatever the order. See
    /// `run::Order`.
    pub(super) shuffled: usize,
    /// The channel's lock while the select holds it; in the first of several cases of a channel.
    pub(super) guard: Cell<Option<Guard<'a>>>,
    /// What that lock guards.
    pub(super) state: *mut State,
    pub(super) node: Node,
}

impl<'a> Case<'a> {
    /// A case without a place for its message.
    #[inline]
    pub(crate) fn new(endpoint: &'a impl Endpoint, index: usize) -> Case<'a> {
        Case::with_slot(endpoint, index, ptr::null_mut())
    }

    /// A receive with a place for its message.
    #[inline]
    pub(crate) fn with_place<T>(
        r: &'a Receiver<T>,
        index: usize,
        place: &'a UnsafeCell<MaybeUninit<T>>,
    ) -> Case<'a> {
        Case::with_slot(r, index, place.get().cast())
    }

    #[inline]
    fn with_slot(endpoint: &'a impl Endpoint, index: usize, slot: *mut ()) -> Case<'a> {
        Case {
            endpoint,
            index,
            side: endpoint.side(),
            core: endpoint.core(),
            clock: endpoint.clock(),
            shuffled: index,
            guard: Cell::new(None),
            state: ptr::null_mut(),
            node: Node::new(slot),
        }
    }

    pub(super) fn copy(&self) -> Case<'a> {
        Case {
            endpoint: self.endpoint,
            index: self.index,
            side: self.side,
            core: self.core,
            clock: self.clock,
            shuffled: self.shuffled,
            guard: Cell::new(None),
            state: ptr::null_mut(),
            node: Node::new(ptr::null_mut()),
        }
    }

    /// Whether it is the case that holds its channel's lock.
    pub(super) fn has_guard(&self) -> bool {
        let guard = self.guard.take();
        let is_held = guard.is_some();
        self.guard.set(guard);
        is_held
    }

    /// Where its lock comes in the order of locks. 0 if it has none.
    pub(super) fn lock_order(&self) -> usize {
        self.core.map_or(0, Core::lock_order)
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("index", &self.index).finish_non_exhaustive()
    }
}
