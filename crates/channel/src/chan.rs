//! A channel of messages: how they get in, out and across.
//!
//! Every operation is one step under the lock, which either is done, or finds a partner, or waits.
//! Values are copied under the lock, made and dropped outside it.

mod complete;

use crate::core::{Core, Patience, Side, State};
use crate::error::{RecvTimeoutError, SendTimeoutError};
use crate::node::{NodeRef, Outcome};
use crate::queue::Wakes;
use crate::rt::{AtomicUsize, Critical, Ordering};
use crate::store::{NeedsBlock, Spare, Store};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// What [`Sender`](crate::Sender) and [`Receiver`](crate::Receiver) share.
pub(crate) struct Chan<T> {
    core: Core,
    /// Guarded by: the lock of `core`.
    store: UnsafeCell<Store<T>>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

// SAFETY: messages are moved from thread to thread, hence `T: Send`, and never shared; the store is
// used under the lock.
unsafe impl<T: Send> Send for Chan<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Chan<T> {}

/// What became of an offered message.
enum Offer {
    Done,
    /// This select, which was claimed, waits for it.
    Meet(NodeRef),
    Full,
    NeedsBlock,
    Closed,
}

/// What became of a wish for a message.
enum Take {
    Done,
    /// This select, which was claimed, waits to send it.
    Meet(NodeRef),
    Empty,
    Closed,
}

/// A value's place on the stack of an operation: full in a sender, to be filled in a receiver.
struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    #[inline(always)]
    const fn full(value: T) -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::new(value)))
    }

    #[inline(always)]
    const fn empty() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    #[inline(always)]
    const fn place(&self) -> *mut T {
        self.0.get().cast()
    }

    const fn untyped(&self) -> *mut () {
        self.0.get().cast()
    }

    /// # Safety
    /// * It holds a value that was not moved out.
    #[inline(always)]
    unsafe fn take(self) -> T {
        // SAFETY: by the caller.
        unsafe { self.0.into_inner().assume_init() }
    }
}

impl<T> Chan<T> {
    /// With one sender and one receiver.
    pub(crate) fn bounded(capacity: usize) -> Chan<T> {
        let store = if capacity == 0 { Store::None } else { Store::ring(capacity) };
        Chan::new(capacity, store)
    }

    pub(crate) fn unbounded() -> Chan<T> {
        Chan::new(usize::MAX, Store::blocks())
    }

    fn new(capacity: usize, store: Store<T>) -> Chan<T> {
        Chan {
            core: Core::new(capacity),
            store: UnsafeCell::new(store),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    // The steps, under the lock.

    /// # Safety
    /// * There is room, and a message at `from`, which moves if this succeeds.
    #[inline]
    unsafe fn push(
        &self,
        state: &mut State,
        from: *const T,
        spare: &mut Spare<T>,
    ) -> Result<(), NeedsBlock> {
        // SAFETY: `state` is what the lock guards, so it is held, and the store is ours.
        let store = unsafe { &mut *self.store.get() };
        // SAFETY: by the caller.
        unsafe { store.push(state.len, from, spare) }?;
        state.len += 1;
        Ok(())
    }

    /// # Safety
    /// * There is a message, and room for it at `to`.
    #[inline]
    unsafe fn pop(&self, state: &mut State, to: *mut T, spare: &mut Spare<T>) {
        // SAFETY: `state` is what the lock guards, so it is held, and the store is ours.
        let store = unsafe { &mut *self.store.get() };
        // SAFETY: by the caller.
        unsafe { store.pop(to, spare) };
        state.len -= 1;
    }

    /// # Safety
    /// * There is a message at `from`. It moves if the offer is `Done`.
    #[inline]
    unsafe fn offer(
        &self,
        state: &mut State,
        from: *const T,
        spare: &mut Spare<T>,
        wakes: &mut Wakes,
    ) -> Offer {
        if state.is_closed {
            return Offer::Closed;
        }
        if !state.receivers.is_empty() {
            // SAFETY: by the caller.
            return unsafe { self.offer_to_waiter(state, from, spare, wakes) };
        }
        // SAFETY: by the caller.
        unsafe { self.offer_to_store(state, from, spare, wakes) }
    }

    /// # Safety
    /// * As for [`offer`](Chan::offer).
    #[inline]
    unsafe fn offer_to_store(
        &self,
        state: &mut State,
        from: *const T,
        spare: &mut Spare<T>,
        wakes: &mut Wakes,
    ) -> Offer {
        if !state.has_room() {
            return Offer::Full;
        }
        // SAFETY: there is room; the message is by the caller.
        if let Err(NeedsBlock) = unsafe { self.push(state, from, spare) } {
            return Offer::NeedsBlock;
        }
        if !state.receive_watchers.is_empty() {
            wakes.push_all(&mut state.receive_watchers);
        }
        Offer::Done
    }

    /// # Safety
    /// * As for [`offer`](Chan::offer).
    unsafe fn offer_to_waiter(
        &self,
        state: &mut State,
        from: *const T,
        spare: &mut Spare<T>,
        wakes: &mut Wakes,
    ) -> Offer {
        while let Some(receiver) = state.receivers.first_open() {
            let slot = receiver.slot();
            if slot.is_none() && self.core.capacity() > 0 {
                break;
            }
            state.receivers.remove(receiver);
            if !receiver.claim() {
                continue;
            }
            let Some(slot) = slot else { return Offer::Meet(receiver) };
            // SAFETY: a receiver of this channel waits with this slot, and is ours; the message is
            // by the caller.
            unsafe { slot.cast::<T>().as_ptr().copy_from_nonoverlapping(from, 1) };
            receiver.settle(Outcome::Done);
            wakes.push(receiver);
            return Offer::Done;
        }
        // SAFETY: by the caller.
        let offer = unsafe { self.offer_to_store(state, from, spare, wakes) };
        self.match_up(state, spare, wakes);
        offer
    }

    /// # Safety
    /// * There is room for a message at `to`. It is there if this is `Done`.
    #[inline]
    unsafe fn take(
        &self,
        state: &mut State,
        to: *mut T,
        spare: &mut Spare<T>,
        wakes: &mut Wakes,
    ) -> Take {
        if state.available() > 0 {
            // SAFETY: there is a message; the room is by the caller.
            unsafe { self.pop(state, to, spare) };
            if !state.senders.is_empty() || !state.send_watchers.is_empty() {
                self.match_up(state, spare, wakes);
            }
            return Take::Done;
        }
        if !state.senders.is_empty() {
            // SAFETY: by the caller.
            return unsafe { self.take_from_waiter(state, to, wakes) };
        }
        if state.is_closed { Take::Closed } else { Take::Empty }
    }

    /// # Safety
    /// * As for [`take`](Chan::take).
    unsafe fn take_from_waiter(&self, state: &mut State, to: *mut T, wakes: &mut Wakes) -> Take {
        while let Some(sender) = state.senders.first_open() {
            let slot = sender.slot();
            if slot.is_none() && self.core.capacity() > 0 {
                break;
            }
            state.senders.remove(sender);
            if !sender.claim() {
                continue;
            }
            let Some(slot) = slot else { return Take::Meet(sender) };
            // SAFETY: a sender of this channel waits with its message there, and is ours; the room
            // is by the caller.
            unsafe { to.copy_from_nonoverlapping(slot.cast::<T>().as_ptr(), 1) };
            sender.settle(Outcome::Done);
            wakes.push(sender);
            return Take::Done;
        }
        Take::Empty
    }

    /// Restores I2 of `core`: gives messages to those who wait for them, and room likewise.
    #[cold]
    fn match_up(&self, state: &mut State, spare: &mut Spare<T>, wakes: &mut Wakes) {
        loop {
            if state.available() > 0
                && let Some(receiver) = state.receivers.pop()
            {
                self.give_message(state, receiver, spare);
                wakes.push(receiver);
            } else if state.has_room()
                && let Some(sender) = state.senders.pop()
            {
                self.give_room(state, sender, spare);
                wakes.push(sender);
            } else {
                break;
            }
        }
        if state.available() > 0 {
            wakes.push_all(&mut state.receive_watchers);
        }
        if state.has_room() {
            wakes.push_all(&mut state.send_watchers);
        }
    }

    fn give_message(&self, state: &mut State, receiver: NodeRef, spare: &mut Spare<T>) {
        match receiver.slot() {
            Some(slot) => {
                // SAFETY: a message is available; a receiver of this channel waits with this slot.
                unsafe { self.pop(state, slot.cast().as_ptr(), spare) };
                receiver.settle(Outcome::Done);
            }
            None => {
                state.messages_promised += 1;
                receiver.settle(Outcome::Promised);
            }
        }
    }

    fn give_room(&self, state: &mut State, sender: NodeRef, spare: &mut Spare<T>) {
        match sender.slot() {
            Some(slot) => {
                // SAFETY: there is room; a sender of this channel waits with its message there.
                let pushed = unsafe { self.push(state, slot.cast().as_ptr(), spare) };
                debug_assert!(pushed.is_ok(), "who waits for room waits for a ring's");
                sender.settle(Outcome::Done);
            }
            None => {
                state.rooms_promised += 1;
                sender.settle(Outcome::Promised);
            }
        }
    }

    // The operations.

    #[inline]
    pub(crate) fn send(&self, message: T, patience: Patience) -> Result<(), SendTimeoutError<T>> {
        let slot = Slot::full(message);
        let mut spare = Spare::none();
        loop {
            let mut wakes = Wakes::new();
            let critical = Critical::enter();
            let mut state = self.core.lock();
            // SAFETY: `slot` is full.
            let offer = unsafe { self.offer(&mut state, slot.place(), &mut spare, &mut wakes) };
            let outcome = match offer {
                Offer::Done => {
                    drop(state);
                    wakes.wake(&critical);
                    return Ok(());
                }
                Offer::NeedsBlock => {
                    drop(state);
                    drop(critical);
                    spare.fill();
                    continue;
                }
                Offer::Closed => {
                    drop(state);
                    drop(critical);
                    Outcome::Closed
                }
                Offer::Meet(select) => {
                    self.core.meet(critical, state, Side::Send, select, slot.untyped())
                }
                Offer::Full if patience.is_over() => {
                    drop(state);
                    drop(critical);
                    Outcome::Waiting
                }
                Offer::Full => {
                    self.core.wait(critical, state, Side::Send, slot.untyped(), patience)
                }
            };
            match outcome {
                Outcome::Done => return Ok(()),
                Outcome::Closed => {
                    // SAFETY: the message is still there.
                    return Err(SendTimeoutError::Disconnected(unsafe { slot.take() }));
                }
                Outcome::Waiting => {
                    // SAFETY: the message is still there.
                    return Err(SendTimeoutError::Timeout(unsafe { slot.take() }));
                }
                Outcome::Retry | Outcome::Promised | Outcome::Partner(_) => {}
            }
        }
    }

    #[inline]
    pub(crate) fn recv(&self, patience: Patience) -> Result<T, RecvTimeoutError> {
        let slot = Slot::empty();
        let mut spare = Spare::none();
        loop {
            let mut wakes = Wakes::new();
            let critical = Critical::enter();
            let mut state = self.core.lock();
            // SAFETY: `slot` is empty.
            let take = unsafe { self.take(&mut state, slot.place(), &mut spare, &mut wakes) };
            let outcome = match take {
                Take::Done => {
                    drop(state);
                    wakes.wake(&critical);
                    drop(critical);
                    Outcome::Done
                }
                Take::Closed => return Err(RecvTimeoutError::Disconnected),
                Take::Meet(select) => {
                    self.core.meet(critical, state, Side::Receive, select, slot.untyped())
                }
                Take::Empty if patience.is_over() => return Err(RecvTimeoutError::Timeout),
                Take::Empty => {
                    self.core.wait(critical, state, Side::Receive, slot.untyped(), patience)
                }
            };
            match outcome {
                // SAFETY: the message is there.
                Outcome::Done => return Ok(unsafe { slot.take() }),
                Outcome::Closed => return Err(RecvTimeoutError::Disconnected),
                Outcome::Waiting => return Err(RecvTimeoutError::Timeout),
                Outcome::Retry | Outcome::Promised | Outcome::Partner(_) => {}
            }
        }
    }

    // The ends.

    /// Drops what is in it, one message at a time: a drop may use the channel.
    fn discard(&self) {
        while self.recv(Patience::None).is_ok() {}
    }

    pub(crate) fn len(&self) -> usize {
        let _critical = Critical::enter();
        self.core.lock().available()
    }

    pub(crate) fn capacity(&self) -> Option<usize> {
        Some(self.core.capacity()).filter(|capacity| *capacity != usize::MAX)
    }

    pub(crate) fn is_full(&self) -> bool {
        let _critical = Critical::enter();
        !self.core.lock().has_room()
    }

    pub(crate) fn add_sender(&self) {
        count_up(&self.senders);
    }

    pub(crate) fn add_receiver(&self) {
        count_up(&self.receivers);
    }

    /// The last one closes the channel; receivers drain it.
    pub(crate) fn remove_sender(&self) {
        if count_down(&self.senders) {
            self.core.close();
        }
    }

    /// The last one closes the channel and drops what is in it.
    pub(crate) fn remove_receiver(&self) {
        if count_down(&self.receivers) {
            self.core.close();
            self.discard();
        }
    }
}

impl<T> Drop for Chan<T> {
    fn drop(&mut self) {
        // Promises that were forgotten.
        self.core.lock().messages_promised = 0;
        self.discard();
    }
}

fn count_up(count: &AtomicUsize) {
    // ORDERING: Relaxed; whoever clones an end has one, so the count is not 0.
    let before = count.fetch_add(1, Ordering::Relaxed);
    assert!(before <= usize::MAX / 2, "too many ends of a channel");
}

/// Whether it was the last.
fn count_down(count: &AtomicUsize) -> bool {
    // ORDERING: AcqRel: what the others did comes before what the last one does.
    count.fetch_sub(1, Ordering::AcqRel) == 1
}
