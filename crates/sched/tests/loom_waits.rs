//! Models of waits that somebody else ends: cancellations, deadlines, turns of a limiter, and futex
//! waits without a thread:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-sched --release --test loom_waits`.
//!
//! The production files, on loom's atomics, cells and locks instead of those of `rt`, and on loom's
//! threads instead of goroutines. Loom fails when somebody waits for ever, and when two use a record
//! at once; a waiter that is woken twice, or a function that is called when its frame is gone, fails
//! an assertion. Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[path = "../src/cancel.rs"]
mod cancel;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../src/futex_queue.rs"]
mod futex_queue;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../src/limiter.rs"]
mod limiter;

#[allow(dead_code, unused_imports, reason = "other models'")]
#[path = "model/rt.rs"]
mod rt;
#[path = "model/timer.rs"]
mod timer;
#[path = "model/wait.rs"]
mod wait;

/// All of the scheduler's that the files name.
mod critical {
    use crate::wait::Waiter;

    pub(crate) struct Critical;

    impl Critical {
        pub(crate) fn enter() -> Critical {
            Critical
        }

        pub(crate) fn wake(&self, waiter: Waiter) {
            waiter.wake();
        }
    }
}

mod machine {
    use crate::wait::Waiter;

    /// All are, wherever they ask.
    pub(crate) struct Inside;

    impl Inside {
        pub(crate) fn enter() -> Option<Inside> {
            Some(Inside)
        }

        pub(crate) fn leave(self) {}

        pub(crate) unsafe fn of_commit() -> Inside {
            Inside
        }

        pub(crate) fn processor(&self) -> Processor {
            Processor { timers: crate::timer::Timers::of_processor() }
        }
    }

    pub(crate) struct Processor {
        pub(crate) timers: &'static crate::timer::Timers,
    }

    impl Waiter {
        pub(crate) fn wake_inside(self, _: &Inside) {
            self.wake();
        }
    }
}

mod blocking {
    pub(crate) fn blocking<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
}

mod current {
    use crate::goroutine::GRef;
    use std::cell::Cell;

    loom::thread_local! {
        /// Made for each wait, since a waiter of the model's is woken once.
        pub(crate) static CURRENT: Cell<Option<GRef>> = Cell::new(None);
    }

    /// The calling thread, as a goroutine that is about to wait.
    pub(crate) fn current() -> Option<GRef> {
        let g = GRef::new();
        CURRENT.with(|current| current.set(Some(g)));
        Some(g)
    }
}

mod goroutine {
    pub(crate) type GRef = crate::wait::Waiter;
}

mod park {
    use crate::goroutine::GRef;
    use crate::machine::Inside;
    use crate::reason::WaitReason;

    pub(crate) fn park(inside: Inside, _: WaitReason, commit: impl FnOnce(GRef) -> bool) -> Inside {
        let g = crate::current::CURRENT.with(|current| current.take());
        crate::wait::suspend(g.expect("it asked who it is"), commit);
        inside
    }
}

mod transition {
    /// Its wake is counted.
    pub(crate) fn ready(_: crate::goroutine::GRef) {}
}

mod idle {
    pub(crate) fn poll_no_later_than(_: u64) {}
}

mod plant {
    pub(crate) enum Place {
        Timer,
    }

    pub(crate) fn here(_: Place) {}
}

mod slab {
    /// Never given back.
    pub(crate) fn map(bytes: usize) -> *mut u8 {
        Box::leak(vec![0_u128; bytes.div_ceil(16)].into_boxed_slice()).as_mut_ptr().cast()
    }

    pub(crate) unsafe fn remap(start: *mut u8, bytes: usize, new_bytes: usize) -> *mut u8 {
        let new = map(new_bytes);
        // SAFETY: the caller's, and a new one that is larger.
        unsafe { new.copy_from_nonoverlapping(start, bytes) };
        new
    }
}

/// What users get.
fn yield_now() {
    thread::yield_now();
}

mod reason {
    pub(crate) enum WaitReason {
        Futex,
        Park,
        SemAcquire,
        Sleep,
    }
}

use cancel::{Cancellation, block_unless, block_until_unless};
use explore::explore;
use futex_queue::Ended;
use limiter::Limiter;
use loom::sync::Mutex;
use loom::thread;
use reason::WaitReason;
use rt::AtomicU32;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};
use timer::{Timers, wait_with_deadline};
use wait::{Waiter, let_time_pass};

/// What a wait is for: the waiter, until somebody takes it.
#[derive(Default)]
struct Slot(Mutex<Option<Waiter>>);

impl Slot {
    fn take(&self) -> Option<Waiter> {
        self.0.lock().unwrap().take()
    }

    /// Waits until the waiter is taken out, or `cancellation` is cancelled. True: taken out.
    fn wait(&self, cancellation: &Cancellation) -> bool {
        // Kept, so that it can be looked at when the frame is gone.
        let is_here: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
        let was_called_off = AtomicBool::new(false);
        let commit = |waiter| {
            *self.0.lock().unwrap() = Some(waiter);
            true
        };
        let expire = || {
            assert!(is_here.load(Relaxed), "the frame is gone");
            let is_mine = self.take().is_some();
            assert!(!was_called_off.swap(true, Relaxed), "called once");
            was_called_off.store(is_mine, Relaxed);
            is_mine
        };
        block_unless(WaitReason::Park, cancellation, commit, expire);
        is_here.store(false, Relaxed);
        !was_called_off.load(Relaxed)
    }
}

/// Catches: `arm` that links without looking at `is_cancelled` under the lock (it waits for ever).
#[test]
fn a_cancellation_ends_waits_of_before_and_after() {
    explore(3, || {
        let shared = Arc::new((Cancellation::new(), [Slot::default(), Slot::default()]));
        let waits = [0, 1].map(|i| {
            let shared = shared.clone();
            thread::spawn(move || assert!(!shared.1[i].wait(&shared.0), "nobody else ends it"))
        });
        shared.0.cancel();
        waits.into_iter().for_each(|t| t.join().unwrap());
        assert!(shared.0.is_cancelled());
    });
}

/// A wake and a cancellation at once: one of the two ends the wait. Catches: `cancel` that wakes
/// without asking `expire` (twice woken).
#[test]
fn a_wake_races_with_a_cancellation() {
    let outcomes = explore(3, || {
        let shared = Arc::new((Cancellation::new(), Slot::default()));
        let waits = thread::spawn({
            let shared = shared.clone();
            move || shared.1.wait(&shared.0)
        });
        let wakes = thread::spawn({
            let shared = shared.clone();
            move || shared.1.take().inspect(|waiter| waiter.wake()).is_some()
        });
        shared.0.cancel();
        let (was_woken, has_woken) = (waits.join().unwrap(), wakes.join().unwrap());
        assert_eq!(was_woken, has_woken);
        was_woken
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

const SOON: u64 = 1;

/// Waits as [`Slot::wait`] does, until the time is over at most. True: taken out.
fn wait_until_time(slot: &Slot, take_before: bool) -> bool {
    let is_here: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
    let timed_out = AtomicBool::new(false);
    let commit = |waiter| {
        *slot.0.lock().unwrap() = Some(waiter);
        !take_before || slot.take().is_none()
    };
    let expire = || {
        assert!(is_here.load(Relaxed), "the frame is gone");
        let is_mine = slot.take().is_some();
        assert!(!timed_out.swap(is_mine, Relaxed), "called once");
        is_mine
    };
    wait_with_deadline(WaitReason::Sleep, SOON, commit, expire);
    is_here.store(false, Relaxed);
    !timed_out.load(Relaxed)
}

/// A wake and a time that comes: one of the two ends the wait, and the record leaves the heap before
/// its frame goes. Catches: `disarm` that does nothing, or does not look at `fired` again under the
/// lock; `fire` that makes the goroutine ready without asking `expire`, or says `fired` before it asks;
/// `arm` that commits before it has the lock.
#[test]
fn a_wake_races_with_a_deadline() {
    let outcomes = explore(3, || {
        let slot = Arc::new(Slot::default());
        let waits = thread::spawn({
            let slot = slot.clone();
            move || wait_until_time(&slot, false)
        });
        let wakes = thread::spawn({
            let slot = slot.clone();
            move || slot.take().inspect(|waiter| waiter.wake()).is_some()
        });
        let timers = Timers::of_processor();
        let before = timers.fire_all();
        let has_woken = wakes.join().unwrap();
        // Who came too late for both has its time now.
        let mut fired = before;
        while !has_woken && fired == 0 {
            thread::yield_now();
            fired += timers.fire_all();
        }
        let was_woken = waits.join().unwrap();
        assert_eq!(was_woken, has_woken);
        assert_eq!(fired, usize::from(!was_woken));
        assert!(timers.is_empty());
        (was_woken, before)
    });
    assert_eq!(outcomes, BTreeSet::from([(false, 0), (false, 1), (true, 0)]));
}

/// The commit finds that there is nothing to wait for: nothing stays in the heap. Catches: `arm` that
/// says `fired` and leaves the record where it is.
#[test]
fn a_wait_that_does_not_begin_leaves_no_deadline() {
    explore(3, || {
        let waits = thread::spawn(|| assert!(wait_until_time(&Slot::default(), true)));
        assert_eq!(Timers::of_processor().fire_all(), 0);
        waits.join().unwrap();
        assert!(Timers::of_processor().is_empty());
    });
}

/// Catches: `release` that adds to `free` and wakes somebody as well (two at a time); `acquire` that
/// does not look again in its commit (it waits for ever).
#[test]
fn no_more_run_at_a_time_than_a_limiter_allows() {
    explore(3, || {
        let shared = Arc::new((Limiter::new(1), loom::cell::UnsafeCell::new(0)));
        let call = |shared: &(Limiter, loom::cell::UnsafeCell<u32>)| {
            // SAFETY: one at a time, which loom checks.
            shared.0.run(|| shared.1.with_mut(|count| unsafe { *count += 1 }));
        };
        let others = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || call(&shared))
        });
        call(&shared);
        others.into_iter().for_each(|t| t.join().unwrap());
        call(&shared);
        // SAFETY: nobody else is left.
        assert_eq!(shared.1.with(|count| unsafe { *count }), 4);
    });
}

/// A wake, a time-out and a cancellation at once: one of the three ends the wait, and the frame is
/// left alone once it is over. Catches: `block_until_unless` that doesn't disarm (the frame is gone).
#[test]
fn a_wake_races_with_a_time_out_and_a_cancellation() {
    let outcomes = explore(2, || {
        let shared = Arc::new((Cancellation::new(), Slot::default()));
        let _passes = let_time_pass();
        let waits = thread::spawn({
            let shared = shared.clone();
            move || {
                let is_here: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
                let was_taken_back = AtomicBool::new(false);
                let commit = |waiter| {
                    *shared.1.0.lock().unwrap() = Some(waiter);
                    true
                };
                let expire = || {
                    assert!(is_here.load(Relaxed), "the frame is gone");
                    let is_mine = shared.1.take().is_some();
                    let before = was_taken_back.load(Relaxed);
                    assert!(!(is_mine && before), "taken back once");
                    was_taken_back.store(is_mine || before, Relaxed);
                    is_mine
                };
                let (at, cancellation) = (Some(Instant::now()), &shared.0);
                block_until_unless(WaitReason::Park, at, cancellation, commit, expire);
                is_here.store(false, Relaxed);
                !was_taken_back.load(Relaxed)
            }
        });
        let wakes = thread::spawn({
            let shared = shared.clone();
            move || shared.1.take().inspect(|waiter| waiter.wake()).is_some()
        });
        shared.0.cancel();
        let (was_woken, has_woken) = (waits.join().unwrap(), wakes.join().unwrap());
        assert_eq!(was_woken, has_woken);
        was_woken
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

const LOCKED: u32 = 1;
const FREE: u32 = 0;
const LONG: Duration = Duration::from_secs(1);

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

/// As std's locks wait and unlock.
fn wait_until_free(word: &AtomicU32) {
    while word.load(Acquire) == LOCKED {
        // SAFETY: a word of the caller's.
        unsafe { futex_queue::wait(address(word), LOCKED, LONG) };
    }
}

/// How many it has woken.
fn free(word: &AtomicU32) -> u32 {
    word.store(FREE, Release);
    if futex_queue::has_waiters() { futex_queue::wake(address(word), 1) } else { 0 }
}

/// Catches: no fence in `has_waiters` (it waits for ever).
#[test]
fn no_wake_of_a_futex_is_lost() {
    let woken = explore(3, || {
        let word = Arc::new(AtomicU32::new(LOCKED));
        let waits = thread::spawn({
            let word = word.clone();
            move || wait_until_free(&word)
        });
        let woken = free(&word);
        waits.join().unwrap();
        assert!(!futex_queue::has_waiters());
        woken
    });
    assert_eq!(woken, BTreeSet::from([0, 1]));
}

/// Two wait at words whose lists are the same. Catches: `pop` that takes the first one of any word.
#[test]
fn who_waits_at_another_word_is_left_alone() {
    explore(2, || {
        let words = Arc::new([AtomicU32::new(LOCKED), AtomicU32::new(LOCKED)]);
        let waits = [0, 1].map(|i| {
            let words = words.clone();
            thread::spawn(move || wait_until_free(&words[i]))
        });
        for word in words.iter() {
            let _ = free(word);
        }
        waits.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// A time-out and a wake at once: who ended the wait is known. Catches: a time-out that leaves the
/// record in its list.
#[test]
fn a_wake_of_a_futex_races_with_a_time_out() {
    let outcomes = explore(3, || {
        let word = Arc::new(AtomicU32::new(LOCKED));
        let _passes = let_time_pass();
        let waits = thread::spawn({
            let word = word.clone();
            // SAFETY: a word of this model's.
            move || unsafe { futex_queue::wait(address(&word), LOCKED, LONG) }
        });
        let woken = free(&word);
        let ended = waits.join().unwrap();
        assert!(woken == 0 || ended == Ended::Woken);
        assert_eq!(futex_queue::wake(address(&word), 1), 0, "nobody is left");
        (woken, ended == Ended::Woken)
    });
    // Woken by nobody: the word had changed before.
    assert_eq!(outcomes, BTreeSet::from([(0, false), (0, true), (1, true)]));
}
