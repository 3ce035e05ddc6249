//! A mutex with its data. [`std::sync::Mutex`].

use crate::node::Patience;
use crate::poison::{Poison, Unwinding};
use crate::raw::RawMutex;
use crate::rt::{Cancels, const_unless_modelled};
use std::cell::UnsafeCell;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// One at a time. [`std::sync::Mutex`], with Go's fairness.
///
/// A goroutine that waits gives its machine to another one. The lock goes to whoever comes along
/// until somebody has waited for 1 ms, who is then given it (`sync.Mutex`); std's makes no promise.
/// The guard belongs to the goroutine, not to the thread, and may be held across waits.
///
/// ```
/// use gosched_sync::{Arc, Mutex};
///
/// let total = Arc::new(Mutex::new(0));
/// let threads: Vec<_> = (1..=4)
///     .map(|n| {
///         let total = total.clone();
///         std::thread::spawn(move || *total.lock().unwrap() += n)
///     })
///     .collect();
/// threads.into_iter().for_each(|t| t.join().unwrap());
/// assert_eq!(*total.lock().unwrap(), 10);
/// ```
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    poison: Poison,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands out access to the data to one holder at a time.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; `&Mutex` gives `&mut T` to one holder only, hence `T: Send`.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// Access to the data of a [`Mutex`]; lets go of it when dropped. [`std::sync::MutexGuard`].
///
/// It may not move to another goroutine or thread:
///
/// ```compile_fail,E0277
/// fn is_send<T: Send>() {}
/// is_send::<gosched_sync::MutexGuard<'_, u32>>();
/// ```
#[must_use = "lets go of the lock at once when it is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    unwinding: Unwinding,
    not_send: PhantomData<*const ()>,
}

// SAFETY: `&MutexGuard` gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    const_unless_modelled! {
        /// A free mutex around `data`.
        pub fn new(data: T) -> Mutex<T> {
            Mutex { raw: RawMutex::new(), poison: Poison::new(), data: UnsafeCell::new(data) }
        }
    }

    /// The data, when nobody uses the mutex any more.
    ///
    /// # Errors
    /// If a holder has panicked; the error holds the data.
    pub fn into_inner(self) -> LockResult<T> {
        let poison = self.poison;
        let data = self.data.into_inner();
        poison.result(data)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, and waits while somebody else has it.
    ///
    /// # Errors
    /// If a holder has panicked; the error holds the guard.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.raw.lock();
        self.guard()
    }

    /// Takes the lock if it is free and nobody starves for it.
    ///
    /// # Errors
    /// `WouldBlock`, or `Poisoned` as for [`lock`](Mutex::lock).
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if !self.raw.try_lock() {
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.guard()?)
    }

    /// As [`lock`](Mutex::lock), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// `Cancelled`, or `Poisoned` as for [`lock`](Mutex::lock).
    pub fn lock_ctx<C: Cancels + ?Sized>(
        &self,
        ctx: &C,
    ) -> Result<MutexGuard<'_, T>, LockCtxError<MutexGuard<'_, T>>> {
        let patience = Patience::unless(ctx).ok_or(LockCtxError::Cancelled)?;
        if !self.raw.lock_with(patience) {
            return Err(LockCtxError::Cancelled);
        }
        self.guard().map_err(LockCtxError::Poisoned)
    }

    /// Whether a holder has panicked.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// Forgets that a holder has panicked.
    #[inline]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// The data, through the only reference to the mutex.
    ///
    /// # Errors
    /// If a holder has panicked; the error holds the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let data = self.data.get_mut();
        self.poison.result(data)
    }

    /// For the one who has just taken the lock.
    #[inline]
    fn guard(&self) -> LockResult<MutexGuard<'_, T>> {
        let unwinding = self.poison.enter();
        self.poison.result(MutexGuard { lock: self, unwinding, not_send: PhantomData })
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Lets go of the lock, calls `wait`, and takes it again, as a condition variable does.
    pub(crate) fn release_during(self, wait: impl FnOnce()) -> LockResult<MutexGuard<'a, T>> {
        let lock = self.lock;
        drop(self);
        wait();
        lock.lock()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard has the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard has the lock.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.poison.leave(self.unwinding);
        self.lock.raw.unlock();
    }
}

/// [`Mutex::lock_ctx`], or one of a [`RwLock`](crate::RwLock)'s, has no plain guard.
pub enum LockCtxError<G> {
    /// A holder has panicked; the guard is in it.
    Poisoned(PoisonError<G>),
    /// The context was cancelled before the lock was free.
    Cancelled,
}

impl<G> fmt::Debug for LockCtxError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockCtxError::Poisoned(_) => f.write_str("Poisoned(..)"),
            LockCtxError::Cancelled => f.write_str("Cancelled"),
        }
    }
}

impl<G> fmt::Display for LockCtxError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockCtxError::Poisoned(error) => error.fmt(f),
            LockCtxError::Cancelled => f.write_str("cancelled while waiting for a lock"),
        }
    }
}

impl<G> Error for LockCtxError<G> {}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(data: T) -> Mutex<T> {
        Mutex::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(TryLockError::Poisoned(error)) => debug.field("data", &&**error.get_ref()),
            Err(TryLockError::WouldBlock) => debug.field("data", &format_args!("<locked>")),
        };
        debug.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
