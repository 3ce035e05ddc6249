//! The queue of all processors: a list behind a lock, with a length that can be read without it.
//!
//! Go's counterpart is `sched.runq` with `globrunqput`, `globrunqputbatch` and `globrunqget`.
//!
//! Invariants
//! * I1. `len` equals the length of `list` whenever the lock is free.
//! * I2. The lock is a leaf: nothing is called while it is held.
//!
//! `len` is a hint for those who don't hold the lock. Whoever must not miss a token that was
//! just put has a fence of its own between lowering its guard and reading `len`, as the one who put
//! the token has before it looks whom to wake.

use std::{cmp, fmt};

use crate::{
    list::{Batch, List},
    ring::HALF,
    sync::{AtomicUsize, Lock, LockGuard, Ordering, const_unless_modelled},
    token::Linked,
};

/// How many tokens a processor takes at most in one go: half of a ring, as in Go.
pub const BATCH_MAX: usize = HALF;

/// The global run queue, first in first out.
///
/// # Examples
/// ```
/// # use std::ptr::NonNull;
/// # use gosched_runq::{Global, Link, Linked, Token};
/// # struct Node { link: Link, id: u32 }
/// # #[derive(Clone, Copy)]
/// # struct Task(&'static Node);
/// # // SAFETY: the pointer is that of a `&'static Node`, and comes back as one.
/// # unsafe impl Token for Task {
/// #     fn into_ptr(self) -> NonNull<()> { NonNull::from(self.0).cast() }
/// #     // SAFETY: by the trait's contract the pointer came from `into_ptr`.
/// #     unsafe fn from_ptr(ptr: NonNull<()>) -> Task { Task(unsafe { ptr.cast().as_ref() }) }
/// # }
/// # // SAFETY: each node has a link of its own.
/// # unsafe impl Linked for Task { fn link(&self) -> &Link { &self.0.link } }
/// # let task = |id| Task(Box::leak(Box::new(Node { link: Link::new(), id })));
/// let global = Global::new();
/// (0..10).for_each(|id| global.push_back(task(id)));
///
/// // One of two processors takes half of what is there, and one more.
/// assert_eq!(global.take_share(2).map(|t| t.0.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
/// assert_eq!(global.len(), 4);
/// # global.take_all().for_each(drop);
/// ```
pub struct Global<T> {
    /// Written by: holders of the lock. Read by: anyone. Guarded by: nothing, see above.
    len: AtomicUsize,
    list: Lock<List<T>>,
}

impl<T> Global<T> {
    const_unless_modelled! {
        /// An empty queue.
        #[inline]
        pub fn new() -> Global<T> {
            Global { len: AtomicUsize::new(0), list: Lock::new(List::new()) }
        }
    }

    /// How many tokens the queue holds, read without the lock.
    #[inline]
    pub fn len(&self) -> usize {
        // Relaxed: a hint; see the module page.
        self.len.load(Ordering::Relaxed)
    }

    /// Whether the queue holds no token, read without the lock.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends a change of the list: sets the length that others see, then frees the lock.
    #[inline]
    fn finish(&self, list: LockGuard<'_, List<T>>) {
        // Relaxed: a hint; see the module page.
        self.len.store(list.len(), Ordering::Relaxed);
    }
}

impl<T: Linked> Global<T> {
    /// Puts `token` at the end.
    #[inline]
    pub fn push_back(&self, token: T) {
        let mut list = self.list.lock();
        list.push_back(token);
        self.finish(list);
    }

    /// Puts `token` before all others.
    #[inline]
    pub fn push_front(&self, token: T) {
        let mut list = self.list.lock();
        list.push_front(token);
        self.finish(list);
    }

    /// Puts all of `batch` at the end, in its order.
    #[inline]
    pub fn append(&self, batch: Batch<T>) {
        if batch.is_empty() {
            return drop(batch);
        }
        let mut list = self.list.lock();
        list.append(batch);
        self.finish(list);
    }

    /// Takes the first token. It takes no lock if the queue looks empty.
    #[inline]
    pub fn pop_front(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut list = self.list.lock();
        let token = list.pop_front();
        self.finish(list);
        token
    }

    /// Takes what is fair for one of `procs` processors: their share and one more, at most
    /// [`BATCH_MAX`]. It takes no lock if the queue looks empty.
    ///
    /// # Panics
    /// If `procs` is 0.
    #[inline]
    pub fn take_share(&self, procs: usize) -> Batch<T> {
        self.take_with(|len| cmp::min(len / procs + 1, BATCH_MAX))
    }

    /// Takes everything. It takes no lock if the queue looks empty.
    #[inline]
    pub fn take_all(&self) -> Batch<T> {
        self.take_with(|len| len)
    }

    /// Takes as many as `count` says of the length.
    #[inline]
    fn take_with(&self, count: impl Fn(usize) -> usize) -> Batch<T> {
        if self.is_empty() {
            return Batch::new();
        }
        let mut list = self.list.lock();
        let count = count(list.len());
        let batch = list.take(count);
        self.finish(list);
        batch
    }
}

impl<T> Default for Global<T> {
    #[inline]
    fn default() -> Global<T> {
        Global::new()
    }
}

impl<T> fmt::Debug for Global<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global").field("len", &self.len()).finish_non_exhaustive()
    }
}
