//! Things made ahead, of which whoever needs one takes one that is free.
//!
//! A place is one word: nothing is there yet, somebody has it, or the address of what is there. No step
//! lies between two of these, so a place that somebody only looks at is never missing for another: where
//! there are two, each of two takers finds one, whoever fills places meanwhile. Taking is a
//! compare-exchange and putting back a store, so both may be done in signal handlers. The model is
//! `tests/loom_places.rs`.

#[cfg(loom)]
use loom::sync::atomic::AtomicPtr;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
#[cfg(not(loom))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Of a place of which somebody has what is there. No address: things are aligned to a word.
const TAKEN: usize = 1;

/// Room for `N` things, which are never freed.
pub(crate) struct Places<T, const N: usize> {
    /// Null, `TAKEN`, or a box's.
    words: [AtomicPtr<T>; N],
}

/// One that was taken. Puts it back.
pub(crate) struct Taken<'a, T> {
    word: &'a AtomicPtr<T>,
    /// What a box held. This one's alone until the word names it again.
    thing: NonNull<T>,
}

// SAFETY: what is there is used by one thread at a time, hence `Send`.
unsafe impl<T: Send, const N: usize> Sync for Places<T, N> {}

impl<T, const N: usize> Places<T, N> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Places<T, N> {
        Places { words: [const { AtomicPtr::new(ptr::null_mut()) }; N] }
    }

    /// Loom's atomics can't be made in constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Places<T, N> {
        Places { words: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }

    /// Has something in the first `count` places when it returns, free or taken.
    pub(crate) fn fill(&self, count: usize, make: impl Fn() -> Box<T>) {
        for word in self.words.iter().take(count) {
            // ORDERING: Relaxed; a place never becomes empty again.
            if !word.load(Relaxed).is_null() {
                continue;
            }
            let thing = Box::into_raw(make());
            // ORDERING: Release pairs with `take`: who takes it sees how it was made.
            if word.compare_exchange(ptr::null_mut(), thing, Release, Relaxed).is_err() {
                // SAFETY: made above; somebody else was first, so nobody has seen it.
                drop(unsafe { Box::from_raw(thing) });
            }
        }
    }

    /// The first that is free. Never waits.
    pub(crate) fn take(&self) -> Option<Taken<'_, T>> {
        self.words.iter().find_map(|word| {
            // ORDERING: Relaxed; the exchange is what counts.
            let thing =
                NonNull::new(word.load(Relaxed)).filter(|thing| thing.addr().get() != TAKEN)?;
            let taken = ptr::without_provenance_mut(TAKEN);
            // ORDERING: Acquire pairs with `fill` and with the last one's `drop`.
            word.compare_exchange(thing.as_ptr(), taken, Acquire, Relaxed).ok()?;
            Some(Taken { word, thing })
        })
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a box's, never freed, which only this one names.
        unsafe { self.thing.as_ref() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.thing.as_mut() }
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        // ORDERING: Release pairs with `take`: the next one sees what was left.
        self.word.store(self.thing.as_ptr(), Release);
    }
}
