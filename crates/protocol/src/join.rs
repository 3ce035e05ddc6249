//! Who waits for a goroutine's result, and whether it is there.
//!
//! One word: nobody yet, a waiter, done, or nobody ever (the handle was dropped). Each side changes
//! it once, and whoever comes second has the packet; there is no count of references.
//!
//! ```text
//!   EMPTY --register--> waiter --complete--> DONE   (the completer wakes the waiter)
//!     ^----withdraw------'
//!     |  --complete---> DONE                        (the handle finds it)
//!     `- --detach-----> DETACHED --complete--> DONE (the completer frees, or renews: DETACHED)
//! ```
//!
//! Invariants
//! * I1. Until the word is DONE the handle calls `register` or `detach` once at most, or again after
//!   a `withdraw` that succeeded; it may call either after that. The goroutine calls `complete` once.
//! * I2. The side whose call comes second has the packet alone, and frees it. A waiter has it
//!   although it came first, since it runs again only after `complete`.
//! * I3. After its call a side touches the packet only as I2 allows.
//!
//! Edges: `join-result`, from `complete` to whoever finds DONE; `join-waiter` and `join-detach`,
//! from `register` and `detach` to the `complete` that comes second. From `complete` to a waiter
//! the wake-up carries the memory.
//!
//! The model is `tests/loom_join.rs`.

use crate::sync::{AtomicUsize, const_unless_modelled};
use gosched_base::rt_abort;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const EMPTY: usize = 0;
const DONE: usize = 1;
const DETACHED: usize = 2;
/// Waiters are addresses of aligned objects, perhaps tagged in the lowest bit.
const LOWEST_WAITER: usize = 8;

/// What `register` found.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The waiter stands in the word; `complete` will wake it.
    Waiting,
    /// The result is there already.
    Done,
}

/// What `complete` found.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The handle is still there and will find the result; the packet is its now.
    Unclaimed,
    /// This waiter must be woken; the packet is its now.
    Wake(NonZeroUsize),
    /// Nobody will ever ask; the completer frees the packet.
    Detached,
}

/// The word that a goroutine and its join handle share.
///
/// # Examples
/// ```
/// use gosched_protocol::{Completed, JoinWord, Registered};
/// use std::num::NonZeroUsize;
///
/// let waiter = NonZeroUsize::new(0x1000).unwrap(); // the address of whoever waits
/// let word = JoinWord::new();
/// assert_eq!(word.register(waiter), Registered::Waiting);
/// assert_eq!(word.complete(), Completed::Wake(waiter));
/// assert!(word.is_done());
///
/// let word = JoinWord::new();
/// assert!(!word.detach()); // not done: the goroutine frees the packet
/// assert_eq!(word.complete(), Completed::Detached);
/// ```
#[derive(Debug)]
pub struct JoinWord(AtomicUsize);

impl JoinWord {
    const_unless_modelled! {
        /// Neither done nor waited for.
        pub fn new() -> JoinWord {
            JoinWord(AtomicUsize::new(EMPTY))
        }
    }

    const_unless_modelled! {
        /// Of a packet that never had a handle.
        pub fn detached() -> JoinWord {
            JoinWord(AtomicUsize::new(DETACHED))
        }
    }

    /// Makes the word of a completed packet fit for another goroutine, again without a handle.
    /// For whoever got `Detached` from `complete`, and so has the packet alone.
    #[inline]
    pub fn renew(&self) {
        // ORDERING: Relaxed; the next goroutine is published by its starter.
        self.0.store(DETACHED, Relaxed);
    }

    /// Whether the result is there. For the handle, and for a waiter that runs again.
    #[inline]
    #[must_use]
    pub fn is_done(&self) -> bool {
        // ORDERING: Acquire pairs with `complete` (edge `join-result`); makes the result visible.
        self.0.load(Acquire) == DONE
    }

    /// Whether the handle was dropped; a hint for the goroutine, until it completes.
    #[inline]
    #[must_use]
    pub fn is_detached(&self) -> bool {
        // ORDERING: Relaxed; true stays true until `complete`, and `complete` decides.
        self.0.load(Relaxed) == DETACHED
    }

    /// Puts the joiner into the word. Handle only.
    ///
    /// Called by the joiner, or on its behalf once it is suspended. After `Waiting` the joiner may
    /// run again already and have freed the packet: the caller touches neither.
    #[inline]
    pub fn register(&self, waiter: NonZeroUsize) -> Registered {
        if waiter.get() < LOWEST_WAITER {
            wrong("register of a number that is no waiter", waiter.get());
        }
        // ORDERING: Release on success pairs with `complete` (edge `join-waiter`); makes the
        // suspended joiner visible. Acquire on failure pairs with `complete` (edge `join-result`);
        // makes the result visible.
        match self.0.compare_exchange(EMPTY, waiter.get(), Release, Acquire) {
            Ok(_) => Registered::Waiting,
            Err(DONE) => Registered::Done,
            Err(found) => wrong("register by a handle that was used up", found),
        }
    }

    /// Takes the joiner out of the word again. True: it will not be woken; false: the result is
    /// there, and its wake is under way. Handle only, or on its behalf, after `register`.
    #[inline]
    #[must_use]
    pub fn withdraw(&self, waiter: NonZeroUsize) -> bool {
        // ORDERING: Relaxed; the joiner has published nothing but itself, and the wake-up carries
        // the memory of the result.
        self.0.compare_exchange(waiter.get(), EMPTY, Relaxed, Relaxed).is_ok()
    }

    /// The handle goes away without joining. True: the result is there, and the caller frees the
    /// packet; false: the goroutine will.
    #[inline]
    #[must_use]
    pub fn detach(&self) -> bool {
        // ORDERING: Release on success pairs with `complete` (edge `join-detach`); the handle's
        // last use of the packet comes before its end. Acquire on failure pairs with `complete`
        // (edge `join-result`); makes the result, which is to be dropped, visible.
        match self.0.compare_exchange(EMPTY, DETACHED, Release, Acquire) {
            Ok(_) => false,
            Err(DONE) => true,
            Err(found) => wrong("detach of a handle that was used up", found),
        }
    }

    /// The result is there. Goroutine only; the packet is not the goroutine's after it, unless
    /// `Detached`.
    #[inline]
    pub fn complete(&self) -> Completed {
        // ORDERING: Release pairs with `is_done`, `register` and `detach` (edge `join-result`);
        // makes the result visible. Acquire pairs with `register` and `detach` (edges
        // `join-waiter`, `join-detach`); makes the suspended joiner visible, and the handle's last
        // use of the packet.
        match self.0.swap(DONE, AcqRel) {
            DETACHED => Completed::Detached,
            DONE => wrong("complete for the second time", DONE),
            waiter => match NonZeroUsize::new(waiter) {
                Some(waiter) => Completed::Wake(waiter),
                None => Completed::Unclaimed,
            },
        }
    }
}

#[cold]
#[inline(never)]
fn wrong(event: &str, word: usize) -> ! {
    rt_abort!("join: {event} ({word:#x})")
}

impl Default for JoinWord {
    fn default() -> JoinWord {
        JoinWord::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
