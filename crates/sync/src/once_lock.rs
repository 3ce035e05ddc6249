//! A value that is written once. [`std::sync::OnceLock`].

use crate::once::Once;
use std::cell::UnsafeCell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A value that is written once and read often. [`std::sync::OnceLock`].
///
/// ```
/// use gosched_sync::OnceLock;
///
/// static LIMIT: OnceLock<u32> = OnceLock::new();
/// assert_eq!(*LIMIT.get_or_init(|| 7), 7);
/// assert_eq!(LIMIT.set(8), Err(8));
/// assert_eq!(LIMIT.get(), Some(&7));
/// ```
pub struct OnceLock<T> {
    once: Once,
    /// Written by: the once's function. Read by: anyone once it is complete. An `Option`, so that there
    /// is no `Drop` of ours: a value that borrows may then end before the lock, as with std's.
    value: UnsafeCell<Option<T>>,
}

// SAFETY: a value written on one thread is read on others, and dropped on any.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// SAFETY: the value moves with it.
unsafe impl<T: Send> Send for OnceLock<T> {}

impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Without a value.
    #[must_use]
    #[inline]
    pub const fn new() -> OnceLock<T> {
        OnceLock { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if it was written.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if !self.once.is_completed() {
            return None;
        }
        // SAFETY: complete, so it is there, and nobody writes any more.
        Some(unsafe { self.get_unchecked() })
    }

    /// The value, through the only reference.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Waits until it was written.
    #[inline]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        // SAFETY: complete, as above.
        unsafe { self.get_unchecked() }
    }

    /// Writes the value.
    ///
    /// # Errors
    /// If there is one already; gives the new one back. Waits if it is being written.
    #[inline]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.init(|| value.take().expect("runs once"));
        value.map_or(Ok(()), Err)
    }

    /// The value; written by `f` if there was none. `f` runs once even if many ask, who wait.
    ///
    /// # Panics
    /// If `f` panics; the next one to ask tries again.
    #[inline]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        if self.get().is_none() {
            self.init(f);
        }
        // SAFETY: complete: by `get`, or since `f` has returned.
        unsafe { self.get_unchecked() }
    }

    #[cold]
    fn init(&self, f: impl FnOnce() -> T) {
        self.once.call_once_force(|_| {
            let value = f();
            let place = self.value.get();
            // SAFETY: only the once's function writes, and it runs once to its end.
            unsafe { *place = Some(value) };
        });
    }

    /// The value, when nobody uses it any more.
    #[inline]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Takes the value out; it may be written anew.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.once = Once::new();
        self.value.get_mut().take()
    }

    /// # Safety
    /// * It was written.
    #[inline]
    unsafe fn get_unchecked(&self) -> &T {
        // SAFETY: nobody writes once it is written.
        let value = unsafe { &*self.value.get() };
        // SAFETY: by the caller.
        unsafe { value.as_ref().unwrap_unchecked() }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        let lock = OnceLock::new();
        // Nobody else knows it.
        let _done = lock.set(value);
        lock
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> OnceLock<T> {
        self.get().cloned().map_or_else(OnceLock::new, OnceLock::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => debug.field(value),
            None => debug.field(&format_args!("<uninit>")),
        };
        debug.finish()
    }
}
