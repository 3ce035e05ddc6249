//! What a select does with its channel once it was told which of its operations it is.
//!
//! The telling was a [`Token`]; the value moves now. It may be dropped instead, without its
//! operation: then what was kept for it goes to somebody else.

use super::{Chan, Offer, Slot, Take};
use crate::core::{Patience, Side, State};
use crate::error::{RecvError, SendError};
use crate::node::{NodeRef, Outcome};
use crate::queue::Wakes;
use crate::rt::Critical;
use crate::select::Token;
use crate::store::Spare;
use std::ptr::NonNull;

impl<T> Chan<T> {
    /// Sends what a select was told to send.
    pub(crate) fn complete_send(&self, token: Token, message: T) -> Result<(), SendError<T>> {
        let slot = Slot::full(message);
        let outcome = match token {
            Token::Closed | Token::Delivered(_) | Token::Instant(_) => Outcome::Closed,
            Token::Promised => self.redeem_room(&slot),
            Token::Partner(receiver) => {
                self.move_to(receiver, &slot);
                Outcome::Done
            }
            Token::Meet(select) => {
                let critical = Critical::enter();
                let state = self.core.lock();
                self.core.meet(critical, state, Side::Send, select, slot.untyped())
            }
        };
        match outcome {
            Outcome::Done => Ok(()),
            // SAFETY: the message is still there.
            Outcome::Closed => Err(SendError(unsafe { slot.take() })),
            // The partner withdrew. The operation was promised to be this one, so it waits.
            // SAFETY: the message is still there.
            _ => self
                .send(unsafe { slot.take() }, Patience::Endless)
                .map_err(|e| SendError(e.into_inner())),
        }
    }

    fn redeem_room(&self, slot: &Slot<T>) -> Outcome {
        let mut spare = Spare::none();
        loop {
            let mut wakes = Wakes::new();
            let critical = Critical::enter();
            let mut state = self.core.lock();
            state.rooms_promised -= 1;
            // SAFETY: the slot is full.
            let offer = unsafe { self.offer(&mut state, slot.place(), &mut spare, &mut wakes) };
            if let Offer::NeedsBlock = offer {
                state.rooms_promised += 1;
                drop(state);
                drop(critical);
                spare.fill();
                continue;
            }
            // The room is free again if a waiting receiver has the message.
            if !state.senders.is_empty() || !state.send_watchers.is_empty() {
                self.match_up(&mut state, &mut spare, &mut wakes);
            }
            drop(state);
            wakes.wake(&critical);
            return match offer {
                Offer::Done => Outcome::Done,
                _ => Outcome::Closed,
            };
        }
    }

    fn move_to(&self, receiver: NodeRef, slot: &Slot<T>) {
        if let Some(place) = receiver.slot() {
            // SAFETY: a receiver of this channel waits with this slot, and is ours; the message is
            // there, and does not count as such from here on.
            unsafe { place.cast::<T>().as_ptr().copy_from_nonoverlapping(slot.place(), 1) };
        }
        self.core.settle_and_wake(receiver, Outcome::Done);
    }

    /// What a select is told that has a place for a message: it is there already, if one is to be had.
    ///
    /// # Safety
    /// * `state` is what this channel's lock guards.
    /// * There is room for a message at `place`.
    pub(crate) unsafe fn deliver(
        &self,
        state: &mut State,
        place: NonNull<()>,
        wakes: &mut Wakes,
    ) -> Option<Token> {
        if self.core.capacity() == usize::MAX {
            // With the message a block may become empty, to be freed outside the lock.
            return state.promise(Side::Receive);
        }
        let mut none = Spare::none();
        // SAFETY: by the caller.
        match unsafe { self.take(state, place.cast().as_ptr(), &mut none, wakes) } {
            Take::Done => Some(Token::Delivered(place)),
            Take::Meet(select) => Some(Token::Meet(select)),
            Take::Closed => Some(Token::Closed),
            Take::Empty => None,
        }
    }

    /// Receives what a select was told to receive.
    pub(crate) fn complete_recv(&self, token: Token) -> Result<T, RecvError> {
        let slot = Slot::empty();
        let outcome = match token {
            Token::Closed | Token::Instant(_) => Outcome::Closed,
            // SAFETY: the place of a receive from this channel, which its sender has filled.
            Token::Delivered(place) => return Ok(unsafe { place.cast::<T>().read() }),
            Token::Promised => self.redeem_message(&slot),
            Token::Partner(sender) => {
                self.move_from(sender, &slot);
                Outcome::Done
            }
            Token::Meet(select) => {
                let critical = Critical::enter();
                let state = self.core.lock();
                self.core.meet(critical, state, Side::Receive, select, slot.untyped())
            }
        };
        match outcome {
            // SAFETY: the message is there.
            Outcome::Done => Ok(unsafe { slot.take() }),
            Outcome::Closed => Err(RecvError),
            // The partner withdrew. The operation was promised to be this one, so it waits.
            _ => self.recv(Patience::Endless).map_err(|_| RecvError),
        }
    }

    fn redeem_message(&self, slot: &Slot<T>) -> Outcome {
        let mut spare = Spare::none();
        let mut wakes = Wakes::new();
        let critical = Critical::enter();
        let mut state = self.core.lock();
        state.messages_promised -= 1;
        // SAFETY: the slot is empty. A message is available: the promised one.
        let _done = unsafe { self.take(&mut state, slot.place(), &mut spare, &mut wakes) };
        drop(state);
        wakes.wake(&critical);
        drop(critical);
        Outcome::Done
    }

    fn move_from(&self, sender: NodeRef, slot: &Slot<T>) {
        if let Some(place) = sender.slot() {
            // SAFETY: a sender of this channel waits with its message there, and is ours.
            unsafe { slot.place().copy_from_nonoverlapping(place.cast::<T>().as_ptr(), 1) };
        }
        self.core.settle_and_wake(sender, Outcome::Done);
    }

    /// Gives back what a select was told but does not do.
    pub(crate) fn abandon(&self, side: Side, token: Token) {
        match token {
            Token::Closed | Token::Instant(_) => {}
            // SAFETY: the place of a receive from this channel, which its sender has filled.
            Token::Delivered(place) => drop(unsafe { place.cast::<T>().read() }),
            Token::Partner(node) | Token::Meet(node) => {
                self.core.settle_and_wake(node, Outcome::Retry);
            }
            Token::Promised => {
                let mut spare = Spare::<T>::none();
                let mut wakes = Wakes::new();
                let critical = Critical::enter();
                let mut state = self.core.lock();
                match side {
                    Side::Send => state.rooms_promised -= 1,
                    Side::Receive => state.messages_promised -= 1,
                }
                self.match_up(&mut state, &mut spare, &mut wakes);
                drop(state);
                wakes.wake(&critical);
            }
        }
    }
}
