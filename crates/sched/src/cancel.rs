//! Waits that end early because somebody says so: what a context stands on.
//!
//! Invariants
//! * I1. A record is in the list from `arm` until it was called off or is disarmed, both under the
//!   lock; its waiter leaves its frame only after that.
//! * I2. Once `is_cancelled`, no record enters the list.
//!
//! The lock is taken in commits, under locks of whatever is waited for, as a timer heap's is.

use crate::critical::Critical;
use crate::reason::WaitReason;
use crate::rt::{AtomicBool, Cell, Lock};
use crate::wait::{Waiter, block, block_until};
use std::error::Error;
use std::fmt;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

/// Ends waits: those that have begun and those to come. Once cancelled it stays so.
///
/// ```
/// use gosched_sched::{Cancellation, WaitReason, block_unless};
/// use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
///
/// static STOP: Cancellation = Cancellation::new();
/// let waits = AtomicBool::new(true); // nobody but the cancellation takes the waiter back
/// let waiting = std::thread::spawn(move || {
///     let take_back = || waits.swap(false, SeqCst);
///     block_unless(WaitReason::Park, &STOP, |_waiter| true, take_back);
/// });
/// STOP.cancel();
/// waiting.join().unwrap();
/// ```
pub struct Cancellation {
    /// As in `synced`, for a look without the lock.
    is_cancelled: AtomicBool,
    synced: Lock<Synced>,
}

struct Synced {
    is_cancelled: bool,
    first: *const Record,
}

/// One wait, on its own stack. Guarded by: the cancellation's lock.
struct Record {
    next: Cell<*const Record>,
    previous: Cell<*const Record>,
    is_linked: Cell<bool>,
    waiter: Cell<Option<Waiter>>,
    /// Tries to take the waiter back.
    expire: unsafe fn(*const ()) -> bool,
    data: *const (),
}

// SAFETY: records are used under the lock, on any thread.
unsafe impl Send for Synced {}

impl Cancellation {
    crate::rt::const_unless_modelled! {
        /// Not cancelled, and nobody waits.
        #[must_use]
        pub fn new() -> Cancellation {
            Cancellation {
                is_cancelled: AtomicBool::new(false),
                synced: Lock::new(Synced { is_cancelled: false, first: ptr::null() }),
            }
        }
    }

    /// Whether [`cancel`](Cancellation::cancel) was called.
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        // ORDERING: Acquire pairs with `cancel`; makes what came before it visible.
        self.is_cancelled.load(Acquire)
    }

    /// Ends all waits.
    pub fn cancel(&self) {
        loop {
            let critical = Critical::enter();
            let mut synced = self.synced.lock();
            synced.is_cancelled = true;
            // ORDERING: Release pairs with `is_cancelled`.
            self.is_cancelled.store(true, Release);
            // SAFETY: in the list, so its waiter is there (I1).
            let Some(record) = (unsafe { synced.first.as_ref() }) else { return };
            synced.unlink(record);
            let (waiter, waits) = (record.waiter.get(), record.call_off());
            drop(synced);
            if let (Some(waiter), true) = (waiter, waits) {
                critical.wake(waiter);
            }
        }
    }

    /// Commits a wait and enters its record, under the lock: it can't be called off before it can
    /// be woken.
    fn arm(&self, record: &Record, waiter: Waiter, commit: impl FnOnce(Waiter) -> bool) -> bool {
        let mut synced = self.synced.lock();
        record.waiter.set(Some(waiter));
        if !commit(waiter) {
            return false;
        }
        // From here on the waiter may be woken; it then waits for the lock in `disarm`.
        if synced.is_cancelled {
            return !record.call_off();
        }
        synced.link(record);
        true
    }

    fn disarm(&self, record: &Record) {
        let _critical = Critical::enter();
        let mut synced = self.synced.lock();
        if record.is_linked.get() {
            synced.unlink(record);
        }
    }
}

/// What can end waits: a context, as functions with `_ctx` in their names take it.
pub trait Cancels {
    /// What ends them; `None` if nothing ever will.
    fn cancellation(&self) -> Option<&Cancellation>;
}

impl Cancels for Cancellation {
    fn cancellation(&self) -> Option<&Cancellation> {
        Some(self)
    }
}

impl Synced {
    fn link(&mut self, record: &Record) {
        // SAFETY: in the list, so its waiter is there (I1).
        if let Some(first) = unsafe { self.first.as_ref() } {
            first.previous.set(record);
        }
        record.next.set(self.first);
        record.previous.set(ptr::null());
        record.is_linked.set(true);
        self.first = record;
    }

    fn unlink(&mut self, record: &Record) {
        let (next, previous) = (record.next.get(), record.previous.get());
        // SAFETY: in the list, so its waiter is there (I1).
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => self.first = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous.set(previous);
        }
        record.is_linked.set(false);
    }
}

impl Record {
    /// Whether its waiter still waited, and so was taken back. Under the lock.
    fn call_off(&self) -> bool {
        // SAFETY: `data` is what `block_until_unless` paired with `expire`, on the same frame (I1).
        unsafe { (self.expire)(self.data) }
    }
}

/// As [`block`], until `cancellation` at most.
///
/// `expire` is [`block_until`]'s: called at most once, when it is cancelled, it
/// decides the race with the waker by trying to take the waiter back. It runs under a lock, perhaps
/// on another thread: like `commit` it must not allocate, panic, block or use thread-locals, and it
/// must not wait for a lock that is held around `block_unless`.
pub fn block_unless<F, E>(reason: WaitReason, cancellation: &Cancellation, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    block_until_unless(reason, None, cancellation, commit, expire);
}

/// As [`block_unless`], and at most until `deadline` if there is one.
///
/// `expire` is asked by the timer and by the cancellation, and returns true to one of them at most.
pub fn block_until_unless<F, E>(
    reason: WaitReason,
    deadline: Option<Instant>,
    cancellation: &Cancellation,
    commit: F,
    expire: E,
) where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    let record = Record {
        next: Cell::new(ptr::null()),
        previous: Cell::new(ptr::null()),
        is_linked: Cell::new(false),
        waiter: Cell::new(None),
        expire: call::<E>,
        data: (&raw const expire).cast(),
    };
    let record = &record;
    let commit = |waiter| cancellation.arm(record, waiter, commit);
    match deadline {
        None => block(reason, commit),
        Some(deadline) => block_until(reason, deadline, commit, &expire),
    }
    cancellation.disarm(record);
}

/// # Safety
/// * `data` is an `E`.
unsafe fn call<E: Fn() -> bool + Sync>(data: *const ()) -> bool {
    // SAFETY: by the caller.
    let expire = unsafe { &*data.cast::<E>() };
    expire()
}

/// The error of waits that a context has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled while waiting")
    }
}

impl Error for Cancelled {}

impl Default for Cancellation {
    fn default() -> Cancellation {
        Cancellation::new()
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
