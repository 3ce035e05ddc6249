//! A value that is made when it is first wanted. [`std::sync::LazyLock`].

use crate::once_lock::OnceLock;
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A value that is made when it is first wanted. [`std::sync::LazyLock`]; Go's `sync.OnceValue`.
///
/// ```
/// use gosched_sync::LazyLock;
///
/// static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| "to be or not".split(' ').collect());
/// assert_eq!(WORDS.len(), 4);
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    /// Taken by: the one who makes the value.
    make: Cell<Option<F>>,
}

// SAFETY: `make` is taken once, under the lock of `value`; the function then runs on that thread.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// `make` will make the value.
    #[inline]
    pub const fn new(make: F) -> LazyLock<T, F> {
        LazyLock { value: OnceLock::new(), make: Cell::new(Some(make)) }
    }

    /// The value; made now if it was not yet.
    ///
    /// # Panics
    /// If making it panics, and ever after.
    #[inline]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.value.get_or_init(|| match this.make.take() {
            Some(make) => make(),
            None => poisoned(),
        })
    }

    /// The value through the only reference; made now if it was not yet.
    /// [`std::sync::LazyLock::force_mut`].
    ///
    /// ```
    /// use gosched_sync::LazyLock;
    ///
    /// let mut lazy = LazyLock::new(|| 92);
    /// *LazyLock::force_mut(&mut lazy) += 1;
    /// assert_eq!(*lazy, 93);
    /// ```
    ///
    /// # Panics
    /// As [`force`](LazyLock::force).
    #[inline]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        this.value.get_mut().unwrap_or_else(|| poisoned())
    }
}

/// As std's.
#[cold]
fn poisoned() -> ! {
    panic!("LazyLock instance has previously been poisoned")
}

impl<T, F> LazyLock<T, F> {
    /// The value, if it was made. [`std::sync::LazyLock::get`].
    ///
    /// ```
    /// use gosched_sync::LazyLock;
    ///
    /// let lazy = LazyLock::new(|| 92);
    /// assert_eq!(LazyLock::get(&lazy), None);
    /// LazyLock::force(&lazy);
    /// assert_eq!(LazyLock::get(&lazy), Some(&92));
    /// ```
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        this.value.get()
    }

    /// The value through the only reference, if it was made. [`std::sync::LazyLock::get_mut`].
    #[inline]
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        this.value.get_mut()
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("LazyLock");
        match self.value.get() {
            Some(value) => debug.field(value),
            None => debug.field(&format_args!("<uninit>")),
        };
        debug.finish()
    }
}
