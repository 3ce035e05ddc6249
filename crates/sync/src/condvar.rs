//! A condition variable. [`std::sync::Condvar`].
//!
//! A waiter is in the queue before it lets go of the mutex, so no notification between the two is
//! lost; a notification takes one out of the queue, so none is doubled. When a wait with a deadline
//! is notified at that moment, the exchange on its node decides: either it was notified, or the
//! notification goes to another waiter.

use crate::mutex::MutexGuard;
use crate::node::{Node, Outcome, Patience, Waited, Wish};
use crate::queue::{Waiters, Wakes};
use crate::rt::{AtomicUsize, Cancels, Critical, WaitReason, const_unless_modelled};
use std::fmt;
use std::sync::LockResult;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Waits for an event that somebody announces. [`std::sync::Condvar`]; Go's `sync.Cond`.
///
/// As Go's, and unlike std's: waiters are notified in the order in which they came, and none wakes
/// without a notification.
///
/// ```
/// use gosched_sync::{Arc, Condvar, Mutex};
///
/// let pair = Arc::new((Mutex::new(false), Condvar::new()));
/// let teller = std::thread::spawn({
///     let pair = pair.clone();
///     move || {
///         *pair.0.lock().unwrap() = true;
///         pair.1.notify_one();
///     }
/// });
/// let (told, bell) = &*pair;
/// let told = bell.wait_while(told.lock().unwrap(), |told| !*told).unwrap();
/// assert!(*told);
/// # drop(told);
/// # teller.join().unwrap();
/// ```
pub struct Condvar {
    /// How many are in the queue, or about to be; a hint for those who notify. Written under the
    /// queue's lock, before the mutex is free.
    count: AtomicUsize,
    waiters: Waiters,
}

/// Whether a wait ended because its time was over. [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// True: not notified.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// Whether a wait ended because its context was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitCtxResult(bool);

impl WaitCtxResult {
    /// True: not notified.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.0
    }
}

impl Condvar {
    const_unless_modelled! {
        /// With nobody waiting.
        pub fn new() -> Condvar {
            Condvar { count: AtomicUsize::new(0), waiters: Waiters::new() }
        }
    }

    /// Lets go of the mutex, waits until it is notified, and takes the mutex again.
    ///
    /// # Errors
    /// If a holder of the mutex has panicked; the error holds the guard.
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (result, _) = self.wait_with(guard, Patience::Endless);
        result
    }

    /// Waits until `condition` is false.
    ///
    /// # Errors
    /// As for [`wait`](Condvar::wait).
    pub fn wait_while<'a, T: ?Sized, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// As [`wait`](Condvar::wait), at most for `timeout`.
    ///
    /// # Errors
    /// As for [`wait`](Condvar::wait).
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (result, waited) = self.wait_with(guard, Patience::timeout(timeout));
        pair(result, WaitTimeoutResult(waited == Waited::Ended))
    }

    /// As [`wait_timeout`](Condvar::wait_timeout), for milliseconds; true: notified.
    ///
    /// # Errors
    /// As for [`wait`](Condvar::wait).
    #[deprecated(note = "as std's: use `wait_timeout`")]
    pub fn wait_timeout_ms<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        ms: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let timeout = Duration::from_millis(u64::from(ms));
        let (result, waited) = self.wait_with(guard, Patience::timeout(timeout));
        pair(result, waited != Waited::Ended)
    }

    /// As [`wait_while`](Condvar::wait_while), at most for `timeout`.
    ///
    /// # Errors
    /// As for [`wait`](Condvar::wait).
    pub fn wait_timeout_while<'a, T: ?Sized, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let patience = Patience::timeout(timeout);
        let mut ended = false;
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            if ended {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            let (result, waited) = self.wait_with(guard, patience);
            ended = waited == Waited::Ended;
            guard = match result {
                Ok(guard) => guard,
                Err(error) => return pair(Err(error), WaitTimeoutResult(ended)),
            };
        }
    }

    /// As [`wait`](Condvar::wait), until `ctx` is cancelled at most.
    ///
    /// # Errors
    /// As for [`wait`](Condvar::wait).
    pub fn wait_ctx<'a, T: ?Sized, C: Cancels + ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        ctx: &C,
    ) -> LockResult<(MutexGuard<'a, T>, WaitCtxResult)> {
        match Patience::unless(ctx) {
            None => Ok((guard, WaitCtxResult(true))),
            Some(patience) => {
                let (result, waited) = self.wait_with(guard, patience);
                pair(result, WaitCtxResult(waited == Waited::Ended))
            }
        }
    }

    fn wait_with<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        patience: Patience<'_>,
    ) -> (LockResult<MutexGuard<'a, T>>, Waited) {
        let node = Node::new(Wish::Whole, 0);
        self.enter(&node);
        let mut waited = Waited::Claimed(Outcome::Woken);
        let result = guard.release_during(|| {
            waited = self.waiters.wait(&node, WaitReason::CondWait, patience);
            if waited == Waited::Ended {
                // ORDERING: Relaxed; only a hint, and too large does no harm.
                self.count.fetch_sub(1, Relaxed);
            }
        });
        (result, waited)
    }

    fn enter(&self, node: &Node) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        // ORDERING: Relaxed; the mutex makes it visible to those whose notification must count.
        self.count.fetch_add(1, Relaxed);
        // SAFETY: it stays on the caller's stack until `Waiters::wait` has returned.
        unsafe { queue.push_back(node) };
    }

    /// Wakes the one that has waited longest.
    #[inline]
    pub fn notify_one(&self) {
        // ORDERING: Relaxed; as in `enter`.
        if self.count.load(Relaxed) != 0 {
            self.notify(false);
        }
    }

    /// Wakes all that wait.
    #[inline]
    pub fn notify_all(&self) {
        // ORDERING: Relaxed; as in `enter`.
        if self.count.load(Relaxed) != 0 {
            self.notify(true);
        }
    }

    #[cold]
    fn notify(&self, all: bool) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        let mut wakes = Wakes::new();
        while let Some(node) = queue.first() {
            if queue.claim(node, Outcome::Woken, &mut wakes) {
                // ORDERING: Relaxed; as in `enter`.
                self.count.fetch_sub(1, Relaxed);
                if !all {
                    break;
                }
            }
        }
        drop(queue);
        wakes.wake(critical);
    }
}

fn pair<G, R>(result: LockResult<G>, with: R) -> LockResult<(G, R)> {
    match result {
        Ok(guard) => Ok((guard, with)),
        Err(error) => Err(PoisonError::new((error.into_inner(), with))),
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
