//! Waits until a number of things are done. Go's `sync.WaitGroup`.

use crate::node::{Node, Patience, Waited, Wish};
use crate::queue::Waiters;
use crate::rt::{AtomicUsize, Cancels, Critical, WaitReason};
#[cfg(not(loom))]
use gosched_sched::{SpawnOptions, spawn};
use std::error::Error;
use std::fmt;
#[cfg(not(loom))]
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

/// Waits until a number of things are done. Go's `sync.WaitGroup`; clones share one count.
///
/// A count that falls to zero lets all go who wait then, and may rise again at once.
///
/// ```
/// use gosched_sync::{Arc, WaitGroup, atomic::{AtomicU32, Ordering::Relaxed}};
///
/// let (all, sum) = (WaitGroup::new(), Arc::new(AtomicU32::new(0)));
/// for n in 1..=4 {
///     let sum = sum.clone();
///     all.go(move || _ = sum.fetch_add(n, Relaxed));
/// }
/// all.wait();
/// assert_eq!(sum.load(Relaxed), 10);
/// ```
#[derive(Clone)]
pub struct WaitGroup {
    shared: Arc<Shared>,
}

struct Shared {
    /// WAITING in the lowest bit, the count above. WAITING changes under the queue's lock only.
    word: AtomicUsize,
    waiters: Waiters,
}

const WAITING: usize = 1;
const ONE: usize = 2;

/// A wait ended before the count was zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The time was over.
    Timeout,
    /// The context was cancelled.
    Cancelled,
}

impl WaitGroup {
    /// With a count of zero.
    #[must_use]
    pub fn new() -> WaitGroup {
        WaitGroup {
            shared: Arc::new(Shared { word: AtomicUsize::new(0), waiters: Waiters::new() }),
        }
    }

    /// There are `n` more to wait for.
    pub fn add(&self, n: usize) {
        // ORDERING: Relaxed; whoever is counted publishes by `done`.
        self.shared.word.fetch_add(n * ONE, Relaxed);
    }

    /// One is done.
    ///
    /// # Panics
    /// If the count is zero.
    #[track_caller]
    pub fn done(&self) {
        // ORDERING: Relaxed; the exchange decides.
        let mut word = self.shared.word.load(Relaxed);
        loop {
            assert!(word >= ONE, "WaitGroup::done: the count is zero");
            if word == ONE | WAITING {
                assert!(self.shared.done_with_waiters(), "WaitGroup::done: the count is zero");
                return;
            }
            // ORDERING: AcqRel: what each has done is visible after the last; pairs with `wait`.
            match self.shared.word.compare_exchange(word, word - ONE, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Runs `f` in a new goroutine, and counts it until it has ended. Go's `WaitGroup.Go`.
    ///
    /// It counts as ended when it panics too; the panic is printed and counted, as that of any
    /// goroutine that nobody joins. (Go's ends the process.)
    ///
    /// # Panics
    /// If there is no memory.
    #[cfg(not(loom))]
    #[track_caller]
    pub fn go<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.add(1);
        let counted = Counted(self.clone());
        let run = move || {
            let _counted = counted;
            f();
        };
        // SAFETY: all is Send and 'static, by the bounds.
        let handle = unsafe { spawn(run, SpawnOptions::default(), Location::caller()) };
        if let Err(error) = handle {
            panic!("WaitGroup::go: {error}");
        }
    }

    /// Waits until the count is zero.
    pub fn wait(&self) {
        let _done = self.shared.wait(Patience::Endless);
    }

    /// As [`wait`](WaitGroup::wait), at most for `timeout`.
    ///
    /// # Errors
    /// `Timeout`.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), WaitError> {
        if self.shared.wait(Patience::timeout(timeout)) { Ok(()) } else { Err(WaitError::Timeout) }
    }

    /// As [`wait`](WaitGroup::wait), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn wait_ctx<C: Cancels + ?Sized>(&self, ctx: &C) -> Result<(), WaitError> {
        let patience = Patience::unless(ctx).ok_or(WaitError::Cancelled)?;
        if self.shared.wait(patience) { Ok(()) } else { Err(WaitError::Cancelled) }
    }
}

/// One that is counted until it is dropped.
#[cfg(not(loom))]
struct Counted(WaitGroup);

#[cfg(not(loom))]
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.done();
    }
}

impl Shared {
    /// The count falls to zero, if it still does, and all who wait go on. False if it is zero.
    #[cold]
    fn done_with_waiters(&self) -> bool {
        let critical = Critical::enter();
        let queue = self.waiters.lock(&critical);
        // ORDERING: AcqRel as in `done`. WAITING and the last one go together, under the lock, so
        // that a count which rises again at once finds no old waiters.
        let mut word = self.word.load(Relaxed);
        loop {
            if word < ONE {
                return false;
            }
            let cleared = if word & !WAITING == ONE { WAITING } else { 0 };
            match self.word.compare_exchange(word, (word - ONE) & !cleared, AcqRel, Relaxed) {
                Ok(_) if cleared == 0 => return true,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        Waiters::wake_all_of(queue, critical);
        true
    }

    fn wait(&self, patience: Patience<'_>) -> bool {
        // ORDERING: Acquire pairs with `done`; what was done is visible.
        if self.word.load(Acquire) < ONE {
            return true;
        }
        let node = Node::new(Wish::Whole, 0);
        {
            let critical = Critical::enter();
            let mut queue = self.waiters.lock(&critical);
            // ORDERING: Acquire as above, if the count is zero; the bit changes under the lock.
            if self.word.fetch_or(WAITING, Acquire) < ONE {
                if queue.is_empty() {
                    // ORDERING: Relaxed; under the lock.
                    self.word.fetch_and(!WAITING, Relaxed);
                }
                return true;
            }
            // SAFETY: it stays on this stack until `Waiters::wait` has returned.
            unsafe { queue.push_back(&node) };
        }
        let waited = self.waiters.wait(&node, WaitReason::WaitGroupWait, patience);
        // ORDERING: Acquire as above; the waker's exchange comes before this.
        self.word.load(Acquire);
        waited != Waited::Ended
    }
}

impl Default for WaitGroup {
    fn default() -> WaitGroup {
        WaitGroup::new()
    }
}

impl fmt::Debug for WaitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ORDERING: Relaxed; for the eye.
        let count = self.shared.word.load(Relaxed) / ONE;
        f.debug_struct("WaitGroup").field("count", &count).finish()
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitError::Timeout => "timed out while waiting for a group",
            WaitError::Cancelled => "cancelled while waiting for a group",
        })
    }
}

impl Error for WaitError {}
