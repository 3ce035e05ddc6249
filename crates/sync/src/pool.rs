//! Values to use again, kept by processor. Go's `sync.Pool`.
//!
//! Each processor has a part with a lock that rarely anybody else wants. A value that is put back
//! is found again by the goroutines of that processor while its memory is warm; an empty part takes
//! from the others.
//!
//! A cycle of `gc` ages the pools: what was not taken for two cycles is dropped, by the goroutine
//! that runs the cycle and outside the runtime. Under a part's lock values are moved only, and the
//! room for them is made before.

use crate::mutex::Mutex;
use crate::once_lock::OnceLock;
use gosched_base::{CachePadded, Lock};
use gosched_sched::{Critical, num_cpu, procs, set_cache_ager};
use std::fmt;
use std::mem;
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

/// One for each processor.
struct Parts<T>(Box<[CachePadded<Lock<Part<T>>>]>);

struct Part<T> {
    fresh: Vec<T>,
    /// What was there at the last cycle.
    old: Vec<T>,
}

/// A pool, for the cycle.
trait Aged: Send + Sync {
    fn age(&self);
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
            let count = procs().max(num_cpu()).next_power_of_two();
            let part = || Part { fresh: Vec::new(), old: Vec::new() };
            let parts = (0..count).map(|_| CachePadded::new(Lock::new(part()))).collect();
            let parts = Arc::new(Parts(parts));
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

impl<T> Parts<T> {
    /// The own part first, then the others, then what is old.
    fn take(&self) -> Option<T> {
        let critical = Critical::enter();
        let own = critical.processor_index();
        let part = |i: usize| &self.0[own.wrapping_add(i) & (self.0.len() - 1)];
        for i in 0..self.0.len() {
            if let Some(value) = part(i).lock().fresh.pop() {
                return Some(value);
            }
        }
        (0..self.0.len()).find_map(|i| part(i).lock().old.pop())
    }

    fn put(&self, value: T) {
        let mut room = Vec::new();
        loop {
            let critical = Critical::enter();
            let own = critical.processor_index() & (self.0.len() - 1);
            let mut part = self.0[own].lock();
            if part.fresh.len() == part.fresh.capacity() && room.capacity() > part.fresh.len() {
                // Moves them; there is room.
                room.append(&mut part.fresh);
                mem::swap(&mut room, &mut part.fresh);
            }
            let capacity = part.fresh.capacity();
            if part.fresh.len() < capacity {
                part.fresh.push(value);
                drop(part);
                // Before `room` is freed.
                drop(critical);
                return;
            }
            drop(part);
            drop(critical);
            room = Vec::with_capacity((capacity * 2).max(8));
        }
    }
}

impl<T: Send> Aged for Parts<T> {
    fn age(&self) {
        for part in &self.0 {
            let critical = Critical::enter();
            let mut part = part.lock();
            let fresh = mem::take(&mut part.fresh);
            let dead = mem::replace(&mut part.old, fresh);
            drop(part);
            drop(critical);
            drop(dead);
        }
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
