//! Permits, of which there are so many. Go's `golang.org/x/sync/semaphore`.

use crate::node::Patience;
use crate::raw::RawSemaphore;
use crate::rt::{Cancels, const_unless_modelled};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A bound on how many do something at a time. Go's `semaphore.Weighted`.
///
/// Permits are given in the order in which they were asked for: one who wants many is not overtaken
/// by one who wants few.
///
/// ```
/// use gosched_sync::Semaphore;
///
/// static AT_ONCE: Semaphore = Semaphore::new(2);
/// let one = AT_ONCE.acquire();
/// let _other = AT_ONCE.acquire();
/// assert!(AT_ONCE.try_acquire().is_none());
/// drop(one);
/// assert!(AT_ONCE.try_acquire().is_some());
/// ```
pub struct Semaphore {
    raw: RawSemaphore,
    permits: usize,
}

/// The right to permits of a [`Semaphore`]; gives them back when dropped.
#[must_use = "gives the permits back at once when it is dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

/// Permits were not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// Not in time.
    Timeout,
    /// The context was cancelled before.
    Cancelled,
}

impl Semaphore {
    const_unless_modelled! {
        /// With so many permits.
        ///
        /// # Panics
        /// If there are more than `usize::MAX / 4`.
        pub fn new(permits: usize) -> Semaphore {
            Semaphore { raw: RawSemaphore::new(permits), permits }
        }
    }

    /// Takes a permit, and waits until one is there and it is the caller's turn.
    ///
    /// # Panics
    /// If the semaphore has none at all: it would wait for ever.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> Permit<'_> {
        self.acquire_many(1)
    }

    /// Takes `permits` permits at once.
    ///
    /// # Panics
    /// If the semaphore has fewer in all: it would wait for ever.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, permits: usize) -> Permit<'_> {
        self.check(permits);
        // An endless wait has no other end.
        let _done = self.raw.acquire(permits, Patience::Endless);
        Permit { semaphore: self, permits }
    }

    /// Takes a permit if one is there and nobody waits.
    #[inline]
    #[must_use]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes `permits` permits if they are there and nobody waits.
    #[inline]
    #[must_use]
    pub fn try_acquire_many(&self, permits: usize) -> Option<Permit<'_>> {
        let takes = permits <= self.permits && self.raw.try_acquire(permits);
        takes.then(|| Permit { semaphore: self, permits })
    }

    /// As [`acquire`](Semaphore::acquire), at most for `timeout`.
    ///
    /// # Errors
    /// `Timeout`.
    ///
    /// # Panics
    /// As for [`acquire`](Semaphore::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permit<'_>, AcquireError> {
        self.check(1);
        if self.raw.acquire(1, Patience::timeout(timeout)) {
            return Ok(Permit { semaphore: self, permits: 1 });
        }
        Err(AcquireError::Timeout)
    }

    /// As [`acquire`](Semaphore::acquire), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// `Cancelled`.
    ///
    /// # Panics
    /// As for [`acquire`](Semaphore::acquire).
    #[track_caller]
    pub fn acquire_ctx<C: Cancels + ?Sized>(&self, ctx: &C) -> Result<Permit<'_>, AcquireError> {
        self.check(1);
        let patience = Patience::unless(ctx).ok_or(AcquireError::Cancelled)?;
        if self.raw.acquire(1, patience) {
            return Ok(Permit { semaphore: self, permits: 1 });
        }
        Err(AcquireError::Cancelled)
    }

    /// How many permits are free; others may take them at once.
    #[must_use]
    pub fn available_permits(&self) -> usize {
        self.raw.free()
    }

    #[inline]
    #[track_caller]
    fn check(&self, permits: usize) {
        assert!(permits <= self.permits, "Semaphore: more permits wanted than there are in all");
    }
}

impl Permit<'_> {
    /// How many it stands for.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.permits
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.permits)
            .field("available", &self.available_permits())
            .finish()
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AcquireError::Timeout => "timed out while waiting for a permit",
            AcquireError::Cancelled => "cancelled while waiting for a permit",
        })
    }
}

impl Error for AcquireError {}
