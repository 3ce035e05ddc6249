//! When an alarm is due, and in which heap it stands.
//!
//! An alarm is set, stopped and fired by anyone at any time; one word decides: its due time. What
//! stands in a heap is a note to look at that word, early at worst. So setting and stopping never
//! wait for a lock: whoever may take a heap's lock [settles](AlarmWord::settle) the alarm afterwards,
//! and who may not has it settled by somebody else.
//!
//! ```text
//!               set(w)      stop         check(now)
//!   NEVER       w, false    -, false     -, Stopped
//!   w <= now    w', true    NEVER, true  NEVER, Fire
//!   w > now     w', true    NEVER, true  -, Later(w)
//! ```
//!
//! Invariants
//! * I1. `home` names the heap in which the alarm stands, 0 if it stands in none. It changes under
//!   the lock of the heap that it names before or after.
//! * I2. After each `set` and `stop` somebody settles. When all have, an alarm that is due at some
//!   time stands in a heap, with that time or an earlier one, and one that is not stands in none.
//! * I3. Each `set` whose time comes is followed by one `Fire`, unless another `set` or a `stop`
//!   returned true for it.
//! * I4. Firings run one at a time: who begins one while another runs leaves it to that one's end.
//!
//! Why I2: whoever settles has written `due` before it reads `home`. If it finds a heap, it looks
//! again under that heap's lock. If it finds none, it enters its own heap by a compare-exchange on
//! `home`, begins again if somebody else was first, and then looks at `due` once more; one that has
//! stopped the alarm makes sure by a compare-exchange too, so that one of both sees the other. A
//! firer that takes the alarm out because of an old `due` clears `home` under the lock, so the
//! settling one finds it cleared.
//!
//! Edges: `alarm-due`, from `set` to `check`; `alarm-rest`, from a stop that finds no heap to who
//! enters one; `alarm-firing`, from the end of a firing to the beginning of the next. Else `home` is
//! ordered by the heaps' locks.
//!
//! The model is `tests/loom_alarm.rs`.

use crate::sync::{AtomicU64, AtomicUsize};
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The due time of an alarm that is not set.
const NEVER: u64 = u64::MAX;
/// The latest time for which an alarm can be set.
const LATEST: u64 = NEVER - 1;

/// The heaps, as [`AlarmWord::settle`] needs them.
pub trait Heaps {
    /// A heap whose lock is held.
    type Locked: LockedHeap;

    /// The heap which an alarm that stands in none enters.
    fn own(&self) -> NonZeroUsize;

    /// Locks a heap.
    fn lock(&self, heap: NonZeroUsize) -> Self::Locked;
}

/// What [`AlarmWord::settle`] does to a heap. The lock is let go by dropping it.
pub trait LockedHeap {
    /// Enters the alarm.
    fn push(&mut self, when: u64);

    /// The alarm stands in this heap and shall not be looked at later than `when`.
    fn advance(&mut self, when: u64);

    /// Takes the alarm out.
    fn remove(&mut self);
}

/// What a firer finds.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is due, and the caller's to fire. It is no longer set.
    Fire,
    /// It was set for this time since.
    Later(u64),
    /// It is not set any more.
    Stopped,
}

/// What settling did.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The alarm entered a heap.
    Entered,
    /// It was taken out of its heap.
    Removed,
    /// It stands where it stood.
    Kept,
}

/// An alarm's state.
///
/// # Examples
/// ```
/// use gosched_protocol::{AlarmWord, Check};
///
/// let alarm = AlarmWord::set_for(10);
/// assert_eq!(alarm.check(5), Check::Later(10));
/// assert_eq!(alarm.check(10), Check::Fire);
/// assert!(!alarm.stop()); // it has fired
/// ```
#[derive(Debug)]
pub struct AlarmWord {
    /// In nanoseconds of some clock; `NEVER` if it is not set. Written by: anyone.
    due: AtomicU64,
    /// I1.
    home: AtomicUsize,
    /// Firings that were begun and not ended.
    firings: AtomicUsize,
}

impl AlarmWord {
    /// Set for `when`, and in no heap yet.
    #[must_use]
    pub fn set_for(when: u64) -> AlarmWord {
        AlarmWord {
            due: AtomicU64::new(when.min(LATEST)),
            home: AtomicUsize::new(0),
            firings: AtomicUsize::new(0),
        }
    }

    /// Sets it for `when`. True if it was set before, for a time that has no effect now.
    #[inline]
    pub fn set(&self, when: u64) -> bool {
        // ORDERING: Release pairs with `check` (edge `alarm-due`), so that a firing sees what came
        // before its setting; Acquire so that what comes after a stopped setting sees what came
        // before that.
        self.due.swap(when.min(LATEST), AcqRel) != NEVER
    }

    /// Stops it. True if it was set; false if it has fired, or was stopped before.
    #[inline]
    pub fn stop(&self) -> bool {
        // ORDERING: as in `set`.
        self.due.swap(NEVER, AcqRel) != NEVER
    }

    /// Whether it is not set and stands in no heap: nothing to settle, after a `stop`.
    #[inline]
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        // ORDERING: Relaxed for `home`, a first look. Acquire for `due` as in `settle`.
        self.home.load(Relaxed) == 0
            && self.due.load(Acquire) == NEVER
            // ORDERING: Release pairs with `enter` (edge `alarm-rest`): whoever enters it after this
            // sees that it is stopped; whoever did before is seen here.
            && self.home.compare_exchange(0, 0, Release, Relaxed).is_ok()
    }

    /// Fires it if it is due. Under the lock of the heap in which it stands.
    #[inline]
    pub fn check(&self, now: u64) -> Check {
        // ORDERING: Relaxed; the exchange decides.
        let mut due = self.due.load(Relaxed);
        loop {
            if due == NEVER {
                return Check::Stopped;
            }
            if due > now {
                return Check::Later(due);
            }
            // ORDERING: Acquire pairs with `set` (edge `alarm-due`).
            match self.due.compare_exchange(due, NEVER, Acquire, Relaxed) {
                Ok(_) => return Check::Fire,
                Err(found) => due = found,
            }
        }
    }

    /// It was taken out of its heap by a firer, who holds that heap's lock.
    #[inline]
    pub fn leave_heap(&self) {
        // ORDERING: Relaxed; under the lock (I1).
        self.home.store(0, Relaxed);
    }

    /// Makes the heaps agree with the due time. After each `set` and `stop`, by whoever may take
    /// the heaps' locks.
    #[inline]
    pub fn settle<H: Heaps>(&self, heaps: &H) -> Settled {
        loop {
            if self.is_at_rest() {
                return Settled::Kept;
            }
            // ORDERING: Relaxed; it is decided under a lock.
            let settled = match NonZeroUsize::new(self.home.load(Relaxed)) {
                None => self.enter(heaps),
                Some(home) => self.move_in(home, heaps),
            };
            if let Some(settled) = settled {
                return settled;
            }
        }
    }

    /// As [`settle`](AlarmWord::settle), for one that nobody else has heard of yet.
    #[inline]
    pub fn settle_first<H: Heaps>(&self, heaps: &H) {
        let own = heaps.own();
        let mut heap = heaps.lock(own);
        // ORDERING: Relaxed; under the lock (I1), and nobody else knows it.
        self.home.store(own.get(), Relaxed);
        // ORDERING: Relaxed; as above.
        heap.push(self.due.load(Relaxed));
    }

    /// Enters the own heap; `None` if somebody else has entered it into one.
    #[inline]
    fn enter<H: Heaps>(&self, heaps: &H) -> Option<Settled> {
        let own = heaps.own();
        let mut heap = heaps.lock(own);
        // ORDERING: Acquire pairs with `is_at_rest` (edge `alarm-rest`).
        self.home.compare_exchange(0, own.get(), Acquire, Relaxed).ok()?;
        // ORDERING: Acquire pairs with `set` (edge `alarm-due`): what a firing sees came through
        // whoever entered it, or through its own look.
        match self.due.load(Acquire) {
            NEVER => {
                self.leave_heap();
                Some(Settled::Kept)
            }
            when => {
                heap.push(when);
                Some(Settled::Entered)
            }
        }
    }

    /// Changes its place in the heap `home`; `None` if it has left that one.
    #[inline]
    fn move_in<H: Heaps>(&self, home: NonZeroUsize, heaps: &H) -> Option<Settled> {
        let mut heap = heaps.lock(home);
        // ORDERING: Relaxed; under the lock (I1).
        if self.home.load(Relaxed) != home.get() {
            return None;
        }
        // ORDERING: Acquire as in `enter`.
        match self.due.load(Acquire) {
            NEVER => {
                heap.remove();
                self.leave_heap();
                Some(Settled::Removed)
            }
            when => {
                heap.advance(when);
                Some(Settled::Kept)
            }
        }
    }

    /// A firing begins. False: another one runs, whose end begins this one.
    #[inline]
    #[must_use]
    pub fn begin_firing(&self) -> bool {
        // ORDERING: Acquire pairs with `end_firing` (edge `alarm-firing`).
        self.firings.fetch_add(1, Acquire) == 0
    }

    /// A firing ends. True: the next one begins now, and is the caller's to start.
    #[inline]
    #[must_use]
    pub fn end_firing(&self) -> bool {
        // ORDERING: Release pairs with `begin_firing` (edge `alarm-firing`); Acquire so that the
        // caller, if it goes on, has what came before the beginning that it makes true.
        self.firings.fetch_sub(1, AcqRel) > 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
