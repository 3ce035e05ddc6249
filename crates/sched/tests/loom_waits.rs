//! Models of waits that somebody else ends: cancellations, and futex waits without a thread:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-sched --release --test loom_waits`.
//!
//! The production files, on loom's atomics, cells and locks instead of those of `rt`, and on loom's
//! threads instead of goroutines. Loom fails when somebody waits for ever, and when two use a record
//! at once; a waiter that is woken twice, or a function that is called when its frame is gone, fails
//! an assertion. Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../src/cancel.rs"]
mod cancel;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../src/futex_queue.rs"]
mod futex_queue;

#[path = "model/rt.rs"]
mod rt;
#[path = "model/wait.rs"]
mod wait;

/// All of the scheduler's that the two files name.
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

    /// Nobody is: all are plain threads.
    pub(crate) enum Inside {}

    impl Inside {
        pub(crate) fn enter() -> Option<Inside> {
            None
        }

        pub(crate) fn leave(self) {}
    }

    impl Waiter {
        pub(crate) fn wake_inside(self, _: &Inside) {}
    }
}

mod reason {
    pub(crate) enum WaitReason {
        Futex,
        Park,
    }
}

use cancel::{Cancellation, block_unless, block_until_unless};
use futex_queue::Ended;
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
use wait::{Waiter, let_time_pass};

/// Runs `model` in every order with at most `preemptions` preemptions; its results.
fn explore<T: Ord + Send + 'static>(
    preemptions: usize,
    model: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let results = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3).min(preemptions));
    let seen = results.clone();
    builder.check(move || {
        let result = model();
        seen.lock().unwrap().insert(result);
    });
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}

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
        words.iter().for_each(|word| drop(free(word)));
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
