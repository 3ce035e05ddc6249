//! Goroutines in the shape of [`std::thread`].
//!
//! `use std::thread` becomes `use gosched::thread`, and what was a thread is a goroutine. Every
//! function works on plain threads as well.

mod scope;

pub use gosched_sched::{JoinHandle, Thread, park, sleep, sleep_ctx, sleep_until, yield_now};
pub use scope::{Scope, ScopedJoinHandle, scope};

use gosched_sched::SpawnOptions;
use std::io;
use std::panic::Location;
use std::time::{Duration, Instant};

/// What [`JoinHandle::join`] returns. std's.
pub type Result<T> = std::thread::Result<T>;

/// The caller: a goroutine, or a plain thread. [`std::thread::current`].
///
/// ```
/// let caller = gosched::thread::current();
/// gosched::go(move || caller.unpark());
/// gosched::thread::park();
/// ```
#[must_use]
pub fn current() -> Thread {
    Thread::current()
}

/// Runs `f` in a new goroutine. [`std::thread::spawn`]; the same as [`go`](crate::go).
///
/// ```
/// let sum = gosched::thread::spawn(|| (1..=10).sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 55);
/// ```
///
/// # Panics
/// If there is no memory.
#[inline]
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    crate::go(f)
}

/// As [`park`], at most for `timeout`. [`std::thread::park_timeout`].
///
/// ```
/// gosched::thread::park_timeout(std::time::Duration::from_millis(1));
/// ```
pub fn park_timeout(timeout: Duration) {
    match Instant::now().checked_add(timeout) {
        Some(deadline) => gosched_sched::park_until(deadline),
        None => park(),
    }
}

/// How many goroutines run at once. [`std::thread::available_parallelism`]; follows GOMAXPROCS.
///
/// # Errors
/// Never; the signature is std's.
pub fn available_parallelism() -> io::Result<std::num::NonZeroUsize> {
    Ok(std::num::NonZeroUsize::new(crate::runtime::gomaxprocs(0))
        .unwrap_or(std::num::NonZeroUsize::MIN))
}

/// Whether the calling thread or goroutine unwinds. std's.
pub use std::thread::panicking;

/// Says more about a goroutine before it is made. [`std::thread::Builder`].
///
/// ```
/// let worker = gosched::thread::Builder::new()
///     .name("worker".into())
///     .stack_size(1 << 20)
///     .spawn(|| gosched::thread::current().name().map(String::from))
///     .unwrap();
/// assert_eq!(worker.join().unwrap().as_deref(), Some("worker"));
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `spawn`"]
pub struct Builder {
    options: SpawnOptions,
}

impl Builder {
    /// A goroutine without a name, with the default stack.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Names it, for dumps and panics.
    pub fn name(mut self, name: String) -> Builder {
        self.options.name = Some(name);
        self
    }

    /// Gives it a stack of at least `bytes`, rounded up to a size class. Pages are committed as
    /// they are touched, so a large stack costs address space only.
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.options.stack_bytes = Some(bytes);
        self
    }

    /// Lets it begin on a NUMA node, where its stack is touched first: node 0 is the first one with
    /// CPUs that this process may use.
    ///
    /// A wish: it goes elsewhere when all processors of the node are busy and others are not, and
    /// later wherever it is stolen to. Where there is no such node it has no effect.
    ///
    /// ```
    /// let near = gosched::thread::Builder::new().node(0).spawn(|| 6 * 7).unwrap();
    /// assert_eq!(near.join().unwrap(), 42);
    /// ```
    pub fn node(mut self, node: usize) -> Builder {
        self.options.node = Some(node);
        self
    }

    /// Runs it on the thread-locals of whatever thread runs it.
    ///
    /// # Safety
    /// * As for [`Config::tls_shared`](crate::Config::tls_shared), for this goroutine.
    pub unsafe fn tls_shared(mut self) -> Builder {
        self.options.shares_tls = true;
        self
    }

    /// Makes the goroutine.
    ///
    /// # Errors
    /// `InvalidInput` if no stack can be that large.
    #[inline]
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: the bounds say that all is Send and 'static; `tls_shared` is its caller's word.
        unsafe { self.spawn_unchecked_at(f, Location::caller()) }
    }

    /// As [`spawn`](Builder::spawn), in a scope. [`std::thread::Builder::spawn_scoped`].
    ///
    /// # Errors
    /// As for [`spawn`](Builder::spawn).
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.spawn_with(self, f, Location::caller())
    }

    /// # Safety
    /// * What `f` and its result borrow outlives the goroutine, and both may cross threads.
    #[inline]
    unsafe fn spawn_unchecked_at<F: FnOnce() -> T, T>(
        self,
        f: F,
        site: &'static Location<'static>,
    ) -> io::Result<JoinHandle<T>> {
        // SAFETY: by the caller.
        unsafe { gosched_sched::spawn(f, self.options, site) }
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }
}
