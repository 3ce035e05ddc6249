//! One operation of a select.

use super::Token;
use crate::clock::Clock;
use crate::core::{Core, Guard, Side, State};
use crate::node::Node;
use crate::receiver::{Flavor, Receiver};
use crate::rt::Cell;
use crate::sender::Sender;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

/// An end of a channel, whatever it carries.
pub(crate) trait Endpoint {
    fn side(&self) -> Side;

    /// Where it waits. `None` for what is never ready, and for clocks that can't be reset.
    fn core(&self) -> Option<&Core>;

    fn clock(&self) -> Option<&Clock>;

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
    /// Its place in the order in which cases are looked at.
    pub(super) rank: u64,
    /// The channel's lock while the select holds it; in the first of several cases of a channel.
    pub(super) guard: Cell<Option<Guard<'a>>>,
    /// What that lock guards.
    pub(super) state: *mut State,
    pub(super) node: Node,
}

impl<'a> Case<'a> {
    /// A case without a place for its message.
    #[inline]
    pub(crate) fn new(endpoint: &'a dyn Endpoint, index: usize) -> Case<'a> {
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
    fn with_slot(endpoint: &'a dyn Endpoint, index: usize, slot: *mut ()) -> Case<'a> {
        Case {
            endpoint,
            index,
            side: endpoint.side(),
            core: endpoint.core(),
            rank: 0,
            guard: Cell::new(None),
            state: ptr::null_mut(),
            node: Node::new(slot),
        }
    }

    pub(super) fn copy(&self) -> Case<'a> {
        Case::new(self.endpoint, self.index)
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
