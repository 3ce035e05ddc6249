//! The runtime, for loom.
//!
//! Goroutines are loom's threads. A timer and a cancellation may strike at any moment, so each is a
//! thread of its own that does. Whether time passes while one waits, and whether waiting threads
//! spin first, is the model's choice.

use loom::sync::{Condvar, Mutex, MutexGuard};
use loom::thread;
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

std::thread_local! {
    // All threads of a loom model are on one thread of the system.
    static TIME_PASSES: Cell<bool> = const { Cell::new(false) };
    static SPINS: Cell<bool> = const { Cell::new(false) };
    static ASYMMETRIC: Cell<bool> = const { Cell::new(false) };
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// How models on the calling thread behave.
#[derive(Clone, Copy, Debug, Default)]
pub struct World {
    /// Every wait is longer than what a lock calls starving.
    pub time_passes: bool,
    /// Waiters spin before they wait.
    pub spins: bool,
    /// Mutexes begin as asymmetric ones, and become so again.
    pub asymmetric: bool,
}

impl World {
    /// For the models that follow.
    pub fn begin(self) {
        TIME_PASSES.set(self.time_passes);
        SPINS.set(self.spins);
        ASYMMETRIC.set(self.asymmetric);
    }
}

pub(crate) fn now_ns() -> u64 {
    if TIME_PASSES.get() {
        NOW.set(NOW.get() + 1_000_000_000);
    }
    NOW.get()
}

pub(crate) fn may_spin() -> bool {
    SPINS.get()
}

pub(crate) fn may_spin_briefly() -> bool {
    SPINS.get()
}

/// Loom knows no barrier of which one side is free: both have a fence. That the light one does not need
/// it is the affair of `raw/mutex/tests.rs`.
pub(crate) mod barrier {
    use super::ASYMMETRIC;
    use loom::sync::atomic::{Ordering::SeqCst, fence};

    pub(crate) fn is_asymmetric() -> bool {
        ASYMMETRIC.get()
    }

    pub(crate) fn light() {
        // ORDERING: as the production's.
        fence(SeqCst);
    }

    pub(crate) fn heavy_or_wait() {
        // ORDERING: as the production's.
        fence(SeqCst);
    }

    pub(crate) fn after_exchange() {
        // ORDERING: as the production's.
        fence(SeqCst);
    }
}

pub(crate) fn is_busy() -> bool {
    false
}

pub(crate) fn give_way_if_alone() {}

/// Nothing shares cache lines in a model.
pub(crate) struct CachePadded<V>(V);

impl<V> CachePadded<V> {
    pub(crate) fn new(value: V) -> CachePadded<V> {
        CachePadded(value)
    }
}

impl<V> Deref for CachePadded<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

pub(crate) struct Lock<V> {
    mutex: Mutex<V>,
}

impl<V> Lock<V> {
    pub(crate) fn new(value: V) -> Lock<V> {
        Lock { mutex: Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> LockGuard<'_, V> {
        LockGuard(self.mutex.lock().expect("nothing panics while it holds the lock"))
    }
}

pub(crate) struct LockGuard<'a, V>(MutexGuard<'a, V>);

impl<V> Deref for LockGuard<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V> DerefMut for LockGuard<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.0
    }
}

/// As the scheduler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as the scheduler's")]
pub(crate) enum WaitReason {
    SemAcquire,
    CondWait,
    MutexLock,
    RwMutexRLock,
    RwMutexLock,
    WaitGroupWait,
}

/// Where a waiter sleeps: the number of permits and its bell. Kept until the end of the process,
/// since wakers may use it after the waiter has gone.
#[derive(Clone, Copy)]
pub(crate) struct Waiter(&'static (Mutex<u32>, Condvar));

impl Waiter {
    fn new() -> Waiter {
        Waiter(Box::leak(Box::new((Mutex::new(0), Condvar::new()))))
    }

    pub(crate) fn into_word(self) -> NonZeroUsize {
        NonZeroUsize::new(std::ptr::from_ref(self.0).addr()).expect("an address")
    }

    /// # Safety
    /// * `word` came from `into_word`.
    pub(crate) unsafe fn from_word(word: NonZeroUsize) -> Waiter {
        // SAFETY: by the caller; never freed.
        Waiter(unsafe { &*(word.get() as *const (Mutex<u32>, Condvar)) })
    }

    pub(crate) fn wake(self) {
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

    /// Two processors: even and odd threads.
    pub(crate) fn processor_index(&self) -> usize {
        let text = format!("{:?}", thread::current().id());
        text.chars().filter_map(|c| c.to_digit(10)).next_back().map_or(0, |n| n as usize)
    }

    pub(crate) fn block<F: FnOnce(Waiter) -> bool>(self, _: WaitReason, commit: F) {
        let waiter = Waiter::new();
        if commit(waiter) {
            waiter.sleep();
        }
    }
}

pub(crate) fn block_until<F, E>(_: WaitReason, _: Instant, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    let waiter = Waiter::new();
    if !commit(waiter) {
        return;
    }
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

/// Strikes at any moment, as a timer.
#[derive(Debug, Default)]
pub struct Cancellation;

/// As the scheduler's.
pub trait Cancels {
    /// As the scheduler's.
    fn cancellation(&self) -> Option<&Cancellation>;
}

impl Cancels for Cancellation {
    fn cancellation(&self) -> Option<&Cancellation> {
        Some(self)
    }
}

impl Cancellation {
    pub(crate) fn is_cancelled(&self) -> bool {
        false
    }
}

pub(crate) fn block_unless<F, E>(reason: WaitReason, _: &Cancellation, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    block_until(reason, Instant::now(), commit, expire);
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
