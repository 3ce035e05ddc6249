//! The runtime, for loom.
//!
//! Goroutines are loom's threads. A commit of a select runs on a thread of its own, as it does in
//! the scheduler, where the goroutine may be resumed before its commit has returned; and so does a
//! timer, which may strike at any moment.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex, MutexGuard};
use loom::thread;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct Lock<V> {
    mutex: Mutex<V>,
    /// Counts unlocks: a step of its own, so that others may come between an unlock and what the
    /// same thread does next, even if that is no step for loom.
    unlocks: Arc<AtomicUsize>,
}

impl<V> Lock<V> {
    pub(crate) fn new(value: V) -> Lock<V> {
        Lock { mutex: Mutex::new(value), unlocks: Arc::new(AtomicUsize::new(0)) }
    }

    pub(crate) fn lock(&self) -> LockGuard<'_, V> {
        let guard = self.mutex.lock().expect("nothing panics while it holds the lock");
        LockGuard { guard: Some(guard), unlocks: self.unlocks.clone() }
    }

    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, V>> {
        let guard = self.mutex.try_lock().ok()?;
        Some(LockGuard { guard: Some(guard), unlocks: self.unlocks.clone() })
    }
}

pub(crate) struct LockGuard<'a, V> {
    guard: Option<MutexGuard<'a, V>>,
    unlocks: Arc<AtomicUsize>,
}

impl<V> Deref for LockGuard<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.guard.as_ref().expect("held until it is dropped")
    }
}

impl<V> DerefMut for LockGuard<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        self.guard.as_mut().expect("held until it is dropped")
    }
}

impl<V> Drop for LockGuard<'_, V> {
    fn drop(&mut self) {
        self.guard = None;
        // ORDERING: Relaxed; a step without meaning.
        self.unlocks.fetch_add(1, Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitReason {
    ChanReceive,
    ChanReceiveNil,
    ChanSend,
    Select,
    SelectNoCases,
}

/// Where a waiter sleeps: the number of permits and its bell. Kept until the end of the process,
/// since wakers may use it after the waiter has gone.
#[derive(Clone, Copy)]
pub(crate) struct Waiter(&'static (Mutex<u32>, Condvar));

impl Waiter {
    fn new() -> Waiter {
        Waiter(Box::leak(Box::new((Mutex::new(0), Condvar::new()))))
    }

    fn wake(self) {
        let (permits, bell) = self.0;
        let mut permits = permits.lock().expect("no panic");
        *permits += 1;
        assert_eq!(*permits, 1, "a waiter is woken once");
        bell.notify_one();
    }

    fn sleep(self) {
        let (permits, bell) = self.0;
        let mut permits = permits.lock().expect("no panic");
        while *permits == 0 {
            permits = bell.wait(permits).expect("no panic");
        }
    }
}

pub(crate) struct Critical;

impl Critical {
    pub(crate) fn enter() -> Critical {
        Critical
    }

    pub(crate) fn wake(&self, waiter: Waiter) {
        waiter.wake();
    }

    pub(crate) fn block<F: FnOnce(Waiter) -> bool>(self, reason: WaitReason, commit: F) {
        block(reason, commit);
    }

    pub(crate) fn block_and_stay<F: FnOnce(Waiter) -> bool>(
        self,
        reason: WaitReason,
        commit: F,
    ) -> Critical {
        block(reason, commit);
        self
    }

    pub(crate) fn block_until<F, E>(
        self,
        reason: WaitReason,
        deadline: Instant,
        commit: F,
        expire: E,
    ) where
        F: FnOnce(Waiter) -> bool,
        E: Fn() -> bool + Sync,
    {
        block_until(reason, deadline, commit, expire);
    }
}

pub(crate) fn block<F: FnOnce(Waiter) -> bool>(reason: WaitReason, commit: F) {
    let waiter = Waiter::new();
    let commit = move || assert!(commit(waiter));
    if reason == WaitReason::Select {
        // SAFETY: as in the scheduler the waiter is not woken before the commit has published it,
        // and the commit uses nothing of its frame after that.
        let _running = unsafe { spawn(commit) };
        waiter.sleep();
    } else {
        commit();
        waiter.sleep();
    }
}

pub(crate) fn block_until<F, E>(_: WaitReason, _: Instant, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    let waiter = Waiter::new();
    assert!(commit(waiter));
    let strike = || {
        if expire() {
            waiter.wake();
        }
    };
    // SAFETY: joined before this frame ends.
    let timer = unsafe { spawn(strike) };
    waiter.sleep();
    timer.join().expect("no panic");
}

/// # Safety
/// * What `f` borrows lives until it is done with it.
unsafe fn spawn<'a>(f: impl FnOnce() + 'a) -> thread::JoinHandle<()> {
    struct Sent(Box<dyn FnOnce()>);
    // SAFETY: only one thread runs it, and the other waits or stays away from what it uses.
    unsafe impl Send for Sent {}
    impl Sent {
        fn run(self) {
            (self.0)();
        }
    }
    let f: Box<dyn FnOnce() + 'a> = Box::new(f);
    // SAFETY: by the caller.
    let f = Sent(unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce()>>(f) });
    thread::spawn(move || f.run())
}

pub(crate) fn random() -> u64 {
    0
}

/// Nothing is cold in a model.
pub(crate) struct Stride;

impl Stride {
    pub(crate) const fn new() -> Stride {
        Stride
    }

    pub(crate) fn passes(&mut self, _: usize) -> Option<usize> {
        None
    }
}

pub(crate) fn prefetch(_: usize) {}

/// Numbers channels in the order in which they are made.
pub(crate) fn next_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // ORDERING: Relaxed; only a number that nobody else has.
    NEXT.fetch_add(1, Relaxed)
}
