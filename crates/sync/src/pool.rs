//! Values to use again, kept by processor. Go's `sync.Pool`.
//!
//! Each processor has a part with a lock that rarely anybody else wants. A value that is put back
//! is found again by the goroutines of that processor while its memory is warm; an empty part takes
//! from the others.
//!
//! A cycle of `gc` ages the pools: what was not taken for two cycles is dropped, by the goroutine
//! that runs the cycle and outside the runtime.

use crate::mutex::Mutex;
use crate::once_lock::OnceLock;
use crate::parts::{Aged, Parts};
use gosched_sched::{num_cpu, procs, set_cache_ager};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, Weak};

/// Values to use again instead of making new ones. Go's `sync.Pool`.
///
/// A value that is put back may be dropped at any cycle of `gc`.
///
/// ```
/// use gosched_sync::Pool;
///
/// static BUFFERS: Pool<Vec<u8>> = Pool::new(|| Vec::with_capacity(4096));
/// let mut buffer = BUFFERS.get();
/// buffer.clear(); // as somebody has left it
/// buffer.extend(b"hello");
/// drop(buffer); // goes back
/// ```
pub struct Pool<T: Send + 'static> {
    make: fn() -> T,
    parts: OnceLock<Arc<Parts<T>>>,
}

/// A value of a [`Pool`]; goes back when dropped.
pub struct Pooled<'a, T: Send + 'static> {
    pool: &'a Pool<T>,
    /// `None` once it was taken out.
    value: Option<T>,
}

/// Every pool that has parts.
static POOLS: Mutex<Vec<Weak<dyn Aged>>> = Mutex::new(Vec::new());

/// What a cycle calls.
fn age_all() {
    let pools: Vec<_> = {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.iter().filter_map(Weak::upgrade).collect()
    };
    // Drops values of users, which may use pools.
    pools.iter().for_each(|pool| pool.age());
}

impl<T: Send + 'static> Pool<T> {
    /// Without values; `make` makes one when none is there.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Pool<T> {
        Pool { make, parts: OnceLock::new() }
    }

    fn parts(&self) -> &Parts<T> {
        self.parts.get_or_init(|| {
            let parts = Arc::new(Parts::new(procs().max(num_cpu())));
            let weak: Weak<dyn Aged> = Arc::downgrade(&parts) as _;
            POOLS.lock().unwrap_or_else(PoisonError::into_inner).push(weak);
            set_cache_ager(age_all);
            parts
        })
    }

    /// A value that was put back, or a new one.
    pub fn get(&self) -> Pooled<'_, T> {
        let value = self.parts().take().unwrap_or_else(self.make);
        Pooled { pool: self, value: Some(value) }
    }

    /// Puts a value there for others.
    pub fn put(&self, value: T) {
        self.parts().put(value);
    }
}

impl<T: Send + 'static> Pooled<'_, T> {
    /// The value itself, which does not go back.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        self.value.take().expect("taken once")
    }
}

impl<T: Send + 'static> Deref for Pooled<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("there until it is taken")
    }
}

impl<T: Send + 'static> DerefMut for Pooled<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("there until it is taken")
    }
}

impl<T: Send + 'static> Drop for Pooled<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.pool.put(value);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for Pooled<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
