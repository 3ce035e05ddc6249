//! What only the owner of a ring may do. Holding the [`Owner`] is the proof.

use std::{error, fmt};

use super::{HALF, Head, Ring, SLOTS};
use crate::{
    list::{Batch, List},
    sync::Ordering,
    token::{Linked, Token, token_of, word_of},
};

/// The owner's side of a [`Ring`]; got from [`Ring::owner`], which is the one unsafe step.
///
/// It costs nothing: it is a reference that says that nobody else has one like it.
pub struct Owner<'a, T> {
    ring: &'a Ring<T>,
}

/// A token and the way by which it left its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the token is in no queue"]
pub enum Popped<T> {
    /// It was in `next` and inherits the running time slice.
    Next(T),
    /// It was the first of the ring and starts a time slice.
    Ring(T),
}

/// The ring had no free slot; the token is given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// The ring had no free slot. Half of it and the token that did not fit, in this order, are to be
/// appended to the global queue.
#[must_use = "the tokens are in no queue"]
pub struct Overflow<T>(pub Batch<T>);

impl<'a, T> Owner<'a, T> {
    /// The owner's side of `ring`. Callers answer for the conditions of [`Ring::owner`].
    #[inline]
    pub(super) fn new(ring: &'a Ring<T>) -> Owner<'a, T> {
        Owner { ring }
    }

    /// The ring this is the owner's side of.
    #[inline]
    pub fn ring(&self) -> &'a Ring<T> {
        self.ring
    }

    /// Where the first token of the ring is: one more for each that leaves there, one less for each
    /// that is pushed before it; modulo 2^32.
    ///
    /// Tells whether what was first some time ago still waits.
    #[inline]
    #[must_use]
    pub fn first_index(&self) -> u32 {
        self.head().index()
    }

    /// How many tokens could be pushed into the ring now. Thieves may raise it at any time.
    #[inline]
    pub fn room(&self) -> usize {
        SLOTS - self.filled(self.head()) as usize
    }

    /// How many slots are filled from `head` on.
    #[inline]
    fn filled(&self, head: Head) -> u32 {
        self.tail().wrapping_sub(head.index())
    }

    /// Whether no slot is free, the head being `head`.
    #[inline]
    fn is_full(&self, head: Head) -> bool {
        self.filled(head) as usize == SLOTS
    }

    /// The tail as the owner knows it.
    #[inline]
    fn tail(&self) -> u32 {
        // Relaxed: only the owner stores it (I3 of ring).
        self.ring.ends.tail.load(Ordering::Relaxed)
    }

    /// The head as far as the owner has seen it move.
    #[inline]
    fn head(&self) -> Head {
        // ORDERING: pairs with the compare-exchange of `Ring::steal_half` (edge `slot-reuse`);
        // keeps the thief's reads of the slots it took before our next writes to them.
        Head::of(self.ring.ends.head.load(Ordering::Acquire))
    }

    /// Makes all slots before `tail` available to thieves.
    #[inline]
    pub(super) fn publish(&mut self, tail: u32) {
        // ORDERING: pairs with `Ring::snapshot` (edge `slot-handover`); makes the slots visible,
        // and what was written before their tokens were pushed.
        self.ring.ends.tail.store(tail, Ordering::Release);
    }

    /// Writes `token` to the free slot of `index`; visible once head or tail say so.
    #[inline]
    fn fill(&mut self, index: u32, token: T)
    where
        T: Token,
    {
        // Relaxed: the edges `slot-handover` and `front-handover` carry it to those who read it.
        self.ring.slot(index).store(word_of(token), Ordering::Relaxed);
    }

    /// Writes a word that a thief read from another ring, `offset` slots behind the tail.
    #[inline]
    pub(super) fn fill_behind_tail(&mut self, offset: u32, word: *mut ()) {
        let index = self.tail().wrapping_add(offset);
        // Relaxed: as in `fill`.
        self.ring.slot(index).store(word, Ordering::Relaxed);
    }

    /// Makes `offset` more slots available, which `fill_behind_tail` has filled.
    #[inline]
    pub(super) fn publish_behind_tail(&mut self, offset: u32) {
        let tail = self.tail().wrapping_add(offset);
        self.publish(tail);
    }

    /// Whether nobody else takes tokens (I6).
    #[inline]
    fn is_alone(&self) -> bool {
        // Relaxed: by `Ring::set_owners_alone`, it was stored before this owner was made.
        self.ring.ends.is_owners_alone.load(Ordering::Relaxed)
    }

    /// Puts `word` into `next`; what was there.
    #[inline]
    fn replace_next(&mut self, word: *mut ()) -> *mut () {
        let next = &self.ring.ends.next;
        if self.is_alone() {
            // Relaxed: it was put by an owner (I6).
            let before = next.load(Ordering::Relaxed);
            // ORDERING: as below.
            next.store(word, Ordering::Release);
            return before;
        }
        // ORDERING: pairs with `Ring::steal_next` (edge `next-handover`); makes what was written
        // before the push visible. Also pairs with `Ring::load_next` (edge `next-moved`); makes
        // the tails stored before visible to whoever finds `next` changed.
        next.swap(word, Ordering::Release)
    }

    /// Moves the head from `seen` to `to`; false if a thief has moved it.
    #[inline]
    fn move_head(&mut self, seen: Head, to: Head) -> bool {
        let head = &self.ring.ends.head;
        if self.is_alone() {
            // ORDERING: as below, for whoever looks. Nobody else moves it (I6).
            head.store(to.word(), Ordering::Release);
            return true;
        }
        // ORDERING: Release pairs with `Ring::snapshot` (edge `front-handover`); makes the slot
        // that `push_front` wrote visible, and the tail that is never behind the head. A failure
        // is followed by a fresh look, so it needs nothing.
        head.compare_exchange(seen.word(), to.word(), Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

impl<T: Token> Owner<'_, T> {
    /// Puts `token` into `next` and returns the one it displaces, for the caller to push at the
    /// back. Go's `runqput` with `next`.
    #[must_use = "the displaced token is in no queue"]
    #[inline]
    pub fn push_next(&mut self, token: T) -> Option<T> {
        let ends = &self.ring.ends;
        // Relaxed: only the owner stores it, and a thief that reads an old value is late for a
        // grace period, not wrong.
        let fills = ends.next_fills.load(Ordering::Relaxed);
        ends.next_fills.store(fills.wrapping_add(1), Ordering::Relaxed);
        let displaced = self.replace_next(word_of(token));
        // SAFETY: from `word_of` - `next` holds nothing else (I5 of ring).
        unsafe { token_of(displaced) }
    }

    /// Takes the token out of `next`.
    #[inline]
    pub fn pop_next(&mut self) -> Option<T> {
        // Relaxed: only the owner fills it, so null stays null.
        if self.ring.ends.next.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Nothing to acquire: the owner put it.
        let word = self.replace_next(std::ptr::null_mut());
        // SAFETY: from `word_of` - `next` holds nothing else (I5 of ring).
        unsafe { token_of(word) }
    }

    /// Puts `token` at the end of the ring.
    #[inline]
    pub fn try_push_back(&mut self, token: T) -> Result<(), Full<T>> {
        if self.is_full(self.head()) {
            return Err(Full(token));
        }
        let tail = self.tail();
        self.fill(tail, token);
        self.publish(tail.wrapping_add(1));
        Ok(())
    }

    /// Puts `token` before all others of the ring, as for a goroutine that was preempted.
    ///
    /// It fails only if the ring is full.
    #[inline]
    pub fn push_front(&mut self, token: T) -> Result<(), Full<T>> {
        loop {
            let head = self.head();
            if self.is_full(head) {
                return Err(Full(token));
            }
            let front = head.retreat();
            self.fill(front.index(), token);
            if self.move_head(head, front) {
                return Ok(());
            }
        }
    }

    /// Puts tokens at the end of the ring until it is full, `max` have been put, or `tokens` ends;
    /// returns how many. They become visible to thieves in one go. Go's `runqputbatch`.
    ///
    /// What is not put is not taken from `tokens`, which may be a [`Batch`].
    #[inline]
    pub fn push_back_batch(&mut self, tokens: &mut impl Iterator<Item = T>, max: usize) -> usize {
        let count = max.min(self.room());
        let tail = self.tail();
        let mut end = tail;
        for token in tokens.take(count) {
            self.fill(end, token);
            end = end.wrapping_add(1);
        }
        self.publish(end);
        end.wrapping_sub(tail) as usize
    }

    /// Takes the token in `next`, or else the first of the ring. Go's `runqget`.
    #[inline]
    pub fn pop(&mut self) -> Option<Popped<T>> {
        match self.pop_next() {
            Some(token) => Some(Popped::Next(token)),
            None => self.pop_front().map(Popped::Ring),
        }
    }

    /// Takes the first token of the ring, whatever `next` holds.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        loop {
            let head = self.head();
            if head.index() == self.tail() {
                return None;
            }
            let token = self.read(head.index());
            if self.move_head(head, head.advance(1)) {
                return Some(token);
            }
        }
    }

    /// The token `offset` places behind the head, if the ring is that long. A thief may take it at
    /// any time: it says only what is likely to be popped soon.
    #[inline]
    pub fn peek(&self, offset: u32) -> Option<T> {
        let index = self.head().index().wrapping_add(offset);
        let left = self.tail().wrapping_sub(index);
        (left != 0 && left as usize <= SLOTS).then(|| self.read(index))
    }

    /// The token in the slot of `index`, which the owner has filled.
    #[inline]
    fn read(&self, index: u32) -> T {
        // Relaxed: only the owner writes slots (I2 of ring).
        let word = self.ring.slot(index).load(Ordering::Relaxed);
        // SAFETY: from `word_of` - slots are set to nothing else.
        unsafe { token_of(word) }.expect("a slot between head and tail is filled")
    }
}

impl<T: Linked> Owner<'_, T> {
    /// Puts `token` at the end of the ring; if there is no room, takes the first half out and
    /// returns it with `token` at its end. Go's `runqput` and `runqputslow`.
    #[inline]
    pub fn push_back(&mut self, token: T) -> Result<(), Overflow<T>> {
        while self.try_push_back(token).is_err() {
            if let Some(batch) = self.give_half_away(token) {
                return Err(Overflow(batch));
            }
        }
        Ok(())
    }

    /// Takes everything out, `next` first and then the ring in order, for a processor that goes
    /// out of service. Go's `runqdrain`.
    #[inline]
    pub fn drain(&mut self) -> Batch<T> {
        let mut drained = List::new();
        if let Some(token) = self.pop_next() {
            drained.push_back(token);
        }
        loop {
            let head = self.head();
            let count = self.filled(head);
            if self.move_head(head, head.advance(count)) {
                self.collect(head, count, &mut drained);
                return drained.into();
            }
        }
    }

    /// Takes all but the first `at` tokens out of the ring, in order. `next` stays.
    ///
    /// For a moment the first ones are in no queue either, and thieves find none.
    #[must_use = "the tokens are in no queue"]
    pub fn split_off(&mut self, at: usize) -> Batch<T> {
        loop {
            let head = self.head();
            let count = self.filled(head);
            if count as usize <= at {
                return Batch::new();
            }
            if self.move_head(head, head.advance(count)) {
                let mut taken = List::new();
                self.collect(head, count, &mut taken);
                // There is room: all slots are free, and nobody else fills any.
                self.push_back_batch(&mut taken.take(at), at);
                return taken.into();
            }
        }
    }

    /// Takes the first half out of the full ring, with `token` at its end; `None` if a thief has
    /// made room.
    #[cold]
    fn give_half_away(&mut self, token: T) -> Option<Batch<T>> {
        let head = self.head();
        if !self.is_full(head) || !self.move_head(head, head.advance(HALF as u32)) {
            return None;
        }
        let mut batch = List::new();
        self.collect(head, HALF as u32, &mut batch);
        batch.push_back(token);
        Some(batch.into())
    }

    /// Appends to `list` the `count` tokens from `head` on, past which the head was just moved.
    ///
    /// They may be read afterwards since only the owner would overwrite them.
    #[inline]
    fn collect(&self, head: Head, count: u32, list: &mut List<T>) {
        for offset in 0..count {
            list.push_back(self.read(head.index().wrapping_add(offset)));
        }
    }
}

impl<T> fmt::Debug for Owner<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(self.ring).finish()
    }
}

impl<T> fmt::Debug for Full<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run queue is full")
    }
}

impl<T> error::Error for Full<T> {}

impl<T> fmt::Debug for Overflow<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Overflow").field(&self.0).finish()
    }
}

impl<T> fmt::Display for Overflow<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run queue was full and gave {} tokens away", self.0.len())
    }
}

impl<T> error::Error for Overflow<T> {}
