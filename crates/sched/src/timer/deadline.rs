//! Goroutines that wait until a time.
//!
//! The record lies on the stack of whoever waits. Firing it means: it says whether its goroutine
//! still waited, and if so the goroutine is made ready.

use super::Timers;
use super::heap::{Entry, Hook, Kind};
use crate::cancel::{Cancelled, Cancels, block_until_unless};
use crate::current::current;
use crate::goroutine::GRef;
use crate::machine::Inside;
use crate::plant::Place;
use crate::reason::WaitReason;
use crate::rt::{AtomicBool, Cell, os, rt_abort};
use crate::wait::nanoseconds;
use crate::{idle, park, plant, transition};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// A waiter's record, on its stack.
#[repr(C)]
pub(super) struct Record {
    hook: Hook,
    when: u64,
    g: GRef,
    /// True if the goroutine still waited. Runs under the heap's lock, with `data`.
    expire: unsafe fn(*const ()) -> bool,
    data: *const (),
    /// Where it was armed. Written by: `arm`, before the waiter can be woken.
    home: Cell<Option<&'static Timers>>,
    fired: AtomicBool,
}

impl Record {
    /// Whose it is.
    ///
    /// # Safety
    /// * `hook` is a record's that has not fired.
    #[inline]
    pub(super) unsafe fn goroutine(hook: *const Hook) -> GRef {
        // SAFETY: by the caller; the hook is the first field.
        unsafe { &*hook.cast::<Record>() }.g
    }

    /// The goroutine, made ready, if it still waited. Under the heap's lock.
    ///
    /// # Safety
    /// * `hook` is a record's, and was popped from its heap just now.
    pub(super) unsafe fn fire(hook: *const Hook) -> Option<GRef> {
        // SAFETY: by the caller; the waiter is still there (I1 of `timer`). The hook is the first
        // field.
        let record = unsafe { &*hook.cast::<Record>() };
        let g = record.g;
        // SAFETY: `data` is what `wait_with_deadline` paired with `expire`, on the same frame.
        let waited = unsafe { (record.expire)(record.data) };
        // ORDERING: Release pairs with `disarm`. The last use of the record: its waiter may
        // be awake for another reason and go.
        record.fired.store(true, Release);
        waited.then(|| {
            transition::ready(g);
            g
        })
    }
}

/// The deadline that lies `d` ahead; `u64::MAX` (never) if that is beyond the clock.
pub(crate) fn after(d: Duration) -> u64 {
    os::monotonic_ns().saturating_add(nanoseconds(d))
}

/// Parks the calling goroutine as `park` does, with a timer that calls `expire` at `when`.
///
/// `expire` decides the race with the waker; it returns true if the goroutine still waited, and
/// the timer then makes it ready. `when == u64::MAX` never fires. Aborts on a plain thread.
pub(crate) fn wait_with_deadline<E: Fn() -> bool + Sync>(
    reason: WaitReason,
    when: u64,
    commit: impl FnOnce(GRef) -> bool,
    expire: E,
) {
    wait(reason, when, Entry::new, commit, expire);
}

fn wait<E: Fn() -> bool + Sync>(
    reason: WaitReason,
    when: u64,
    entry: fn(u64, *const Hook) -> Entry,
    commit: impl FnOnce(GRef) -> bool,
    expire: E,
) {
    let (Some(g), Some(inside)) = (current(), Inside::enter()) else {
        rt_abort!("a timer's wait on a plain thread")
    };
    let record = Record {
        hook: Hook::new(Kind::Waiter),
        when,
        g,
        expire: call::<E>,
        data: (&raw const expire).cast(),
        home: Cell::new(None),
        fired: AtomicBool::new(false),
    };
    let record_ref = &record;
    let inside = park::park(inside, reason, move |g| arm(record_ref, entry, || commit(g)));
    disarm(record_ref);
    inside.leave();
}

/// # Safety
/// * `data` is an `E`.
unsafe fn call<E: Fn() -> bool + Sync>(data: *const ()) -> bool {
    // SAFETY: by the caller.
    let expire = unsafe { &*data.cast::<E>() };
    expire()
}

/// Puts the record into the heap of the processor that runs this, and commits, under one lock: the
/// timer can't fire before the goroutine can be woken.
fn arm(
    record: &Record,
    entry: fn(u64, *const Hook) -> Entry,
    commit: impl FnOnce() -> bool,
) -> bool {
    if record.when == u64::MAX {
        return commit();
    }
    plant::here(Place::Timer);
    // SAFETY: commits run inside the runtime.
    let inside = unsafe { Inside::of_commit() };
    let when = record.when;
    let timers = &inside.processor().timers;
    let mut heap = timers.heap.lock();
    record.home.set(Some(timers));
    let hook = (&raw const *record).cast::<Hook>();
    // SAFETY: `disarm` comes before the record goes.
    unsafe { heap.push(entry(when, hook)) };
    let waits = commit();
    // From here on the goroutine may run, and wait for the lock in `disarm`.
    if !waits {
        heap.remove(&record.hook);
        // ORDERING: Relaxed; only this goroutine reads it.
        record.fired.store(true, Relaxed);
    }
    timers.publish_next(&heap);
    drop(heap);
    if waits {
        idle::poll_no_later_than(when);
    }
    waits
}

/// Takes the record out of its heap if it has not fired.
fn disarm(record: &Record) {
    let Some(timers) = record.home.get() else { return };
    // ORDERING: Acquire pairs with `fire`: the timer's last use of the record is over.
    if record.fired.load(Acquire) {
        return;
    }
    let mut heap = timers.heap.lock();
    // ORDERING: Relaxed; under the lock.
    if !record.fired.load(Relaxed) {
        heap.remove(&record.hook);
        timers.publish_next(&heap);
    }
}

/// Waits for `d`. Go's `time.Sleep`; precise below a millisecond where the machine is idle.
///
/// A goroutine sleeps without its machine; a plain thread as `std::thread::sleep` does.
///
/// ```
/// # use std::time::{Duration, Instant};
/// let start = Instant::now();
/// gosched_sched::sleep(Duration::from_millis(2));
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// ```
pub fn sleep(d: Duration) {
    if current().is_none() {
        return std::thread::sleep(d);
    }
    if d.is_zero() {
        return crate::yield_now();
    }
    // Nothing else ends a sleep, so its entry stays until it is due.
    wait(WaitReason::Sleep, after(d), Entry::that_stays, |_| true, || true);
}

/// Waits until `deadline`. See [`sleep`].
pub fn sleep_until(deadline: Instant) {
    sleep(deadline.saturating_duration_since(Instant::now()));
}

/// As [`sleep`], but gives up when `ctx` is cancelled.
///
/// Go's `select` of `time.After` and `ctx.Done()`.
///
/// ```
/// # use gosched_sched::{Cancellation, Cancelled, sleep_ctx};
/// # use std::time::Duration;
/// static STOP: Cancellation = Cancellation::new();
/// assert_eq!(sleep_ctx(&STOP, Duration::from_millis(1)), Ok(()));
/// let sleeper = std::thread::spawn(|| sleep_ctx(&STOP, Duration::MAX));
/// STOP.cancel();
/// assert_eq!(sleeper.join().unwrap(), Err(Cancelled));
/// ```
///
/// # Errors
/// If `ctx` is cancelled, before or meanwhile.
pub fn sleep_ctx<C: Cancels + ?Sized>(ctx: &C, d: Duration) -> Result<(), Cancelled> {
    let Some(cancellation) = ctx.cancellation() else {
        sleep(d);
        return Ok(());
    };
    if !cancellation.is_cancelled() {
        if d.is_zero() {
            sleep(d);
        } else {
            let waits = AtomicBool::new(true);
            // ORDERING: Relaxed; only decides whose the waiter is, under a lock of each.
            let expire = || waits.swap(false, Relaxed);
            let deadline = Instant::now().checked_add(d);
            block_until_unless(WaitReason::Sleep, deadline, cancellation, |_| true, expire);
        }
    }
    if cancellation.is_cancelled() { Err(Cancelled) } else { Ok(()) }
}
