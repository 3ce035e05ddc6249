//! A lock for readers and writers with its data. [`std::sync::RwLock`].

use crate::mutex::LockCtxError;
use crate::node::Patience;
use crate::poison::{Poison, Unwinding};
use crate::raw::RawRwLock;
use crate::rt::{Cancels, const_unless_modelled};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::{LockResult, TryLockError, TryLockResult};

/// Many readers or one writer. [`std::sync::RwLock`], with a promise: neither side starves.
///
/// Readers join other readers only while nobody waits, so, as with Go's `sync.RWMutex`, one who
/// reads must not read again in the same goroutine: a writer that came in between waits for the
/// first read, and the second waits for the writer. A panic of a reader does not poison it.
///
/// ```
/// use gosched_sync::RwLock;
///
/// let lock = RwLock::new(5);
/// {
///     let (one, two) = (lock.read().unwrap(), lock.read().unwrap());
///     assert_eq!(*one + *two, 10);
/// }
/// *lock.write().unwrap() += 1;
/// assert_eq!(*lock.read().unwrap(), 6);
/// ```
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    poison: Poison,
    data: UnsafeCell<T>,
}

// SAFETY: the data moves with the lock.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: `&RwLock` gives `&mut T` to one writer, or `&T` to readers on several threads.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// Shared access to the data of a [`RwLock`]. [`std::sync::RwLockReadGuard`].
#[must_use = "lets go of the lock at once when it is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    raw: &'a RawRwLock,
    /// Not through the lock, whose data may change: a guard of a longer lifetime is one of a shorter.
    /// And not `Send`.
    data: NonNull<T>,
}

/// Access to the data of a [`RwLock`] for one. [`std::sync::RwLockWriteGuard`].
#[must_use = "lets go of the lock at once when it is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    unwinding: Unwinding,
    not_send: PhantomData<*const ()>,
}

// SAFETY: `&RwLockReadGuard` gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: `&RwLockWriteGuard` gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    const_unless_modelled! {
        /// A free lock around `data`.
        pub fn new(data: T) -> RwLock<T> {
            RwLock { raw: RawRwLock::new(), poison: Poison::new(), data: UnsafeCell::new(data) }
        }
    }

    /// The data, when nobody uses the lock any more.
    ///
    /// # Errors
    /// If a writer has panicked; the error holds the data.
    pub fn into_inner(self) -> LockResult<T> {
        let poison = self.poison;
        let data = self.data.into_inner();
        poison.result(data)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes a share, and waits while a writer has the lock or waits for it.
    ///
    /// # Errors
    /// If a writer has panicked; the error holds the guard.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.raw.read();
        self.read_guard()
    }

    /// Takes the lock for one, and waits while anybody has it.
    ///
    /// # Errors
    /// If a writer has panicked; the error holds the guard.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.raw.write();
        self.write_guard()
    }

    /// Takes a share if that needs no wait.
    ///
    /// # Errors
    /// `WouldBlock`, or `Poisoned` as for [`read`](RwLock::read).
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        if !self.raw.try_read() {
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.read_guard()?)
    }

    /// Takes the lock for one if that needs no wait.
    ///
    /// # Errors
    /// `WouldBlock`, or `Poisoned` as for [`write`](RwLock::write).
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        if !self.raw.try_write() {
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.write_guard()?)
    }

    /// As [`read`](RwLock::read), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// `Cancelled`, or `Poisoned` as for [`read`](RwLock::read).
    pub fn read_ctx<C: Cancels + ?Sized>(
        &self,
        ctx: &C,
    ) -> Result<RwLockReadGuard<'_, T>, LockCtxError<RwLockReadGuard<'_, T>>> {
        let patience = Patience::unless(ctx).ok_or(LockCtxError::Cancelled)?;
        if !self.raw.read_with(patience) {
            return Err(LockCtxError::Cancelled);
        }
        self.read_guard().map_err(LockCtxError::Poisoned)
    }

    /// As [`write`](RwLock::write), but gives up when `ctx` is cancelled. Readers that waited
    /// behind it then go on.
    ///
    /// # Errors
    /// `Cancelled`, or `Poisoned` as for [`write`](RwLock::write).
    pub fn write_ctx<C: Cancels + ?Sized>(
        &self,
        ctx: &C,
    ) -> Result<RwLockWriteGuard<'_, T>, LockCtxError<RwLockWriteGuard<'_, T>>> {
        let patience = Patience::unless(ctx).ok_or(LockCtxError::Cancelled)?;
        if !self.raw.write_with(patience) {
            return Err(LockCtxError::Cancelled);
        }
        self.write_guard().map_err(LockCtxError::Poisoned)
    }

    /// Whether a writer has panicked.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// Forgets that a writer has panicked.
    #[inline]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// The data, through the only reference to the lock.
    ///
    /// # Errors
    /// If a writer has panicked; the error holds the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let data = self.data.get_mut();
        self.poison.result(data)
    }

    /// The guard of one who has a share.
    #[inline]
    fn shared(&self) -> RwLockReadGuard<'_, T> {
        // SAFETY: a cell's address is not null.
        let data = unsafe { NonNull::new_unchecked(self.data.get()) };
        RwLockReadGuard { raw: &self.raw, data }
    }

    /// For one who has just taken a share.
    #[inline]
    fn read_guard(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.poison.result(self.shared())
    }

    /// For the one who has just taken the lock.
    #[inline]
    fn write_guard(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let unwinding = self.poison.enter();
        self.poison.result(RwLockWriteGuard { lock: self, unwinding, not_send: PhantomData })
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Makes it a reader's, so that other readers may come in but no writer in between.
    /// [`std::sync::RwLockWriteGuard::downgrade`].
    ///
    /// ```
    /// use gosched_sync::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(1);
    /// let mut write = lock.write().unwrap();
    /// *write = 2;
    /// let read = RwLockWriteGuard::downgrade(write);
    /// assert_eq!(*lock.try_read().unwrap(), 2);
    /// assert_eq!(*read, 2);
    /// ```
    pub fn downgrade(this: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let lock = this.lock;
        lock.poison.leave(this.unwinding);
        mem::forget(this);
        lock.raw.downgrade();
        lock.shared()
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard has a share of the lock.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard has the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard has the lock.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.raw.read_unlock();
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.poison.leave(self.unwinding);
        self.lock.raw.write_unlock();
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(data: T) -> RwLock<T> {
        RwLock::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(TryLockError::Poisoned(error)) => debug.field("data", &&**error.get_ref()),
            Err(TryLockError::WouldBlock) => debug.field("data", &format_args!("<locked>")),
        };
        debug.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
