//! Models of a thread that sleeps until another says so:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-base --release --test loom_parker`.
//!
//! The production file on loom's atomics, and on a kernel of a lock and a bell, which compares the
//! word under its lock as futex(2) does. Loom fails when somebody sleeps for ever, and when what was
//! written before a wake is read before it is visible. Each test names changes of the code that it is
//! known to catch.
#![cfg(loom)]

#[allow(unreachable_pub, dead_code, reason = "the runtime's")]
#[path = "model/explore.rs"]
mod explore;
#[path = "../src/parker.rs"]
mod parker;

mod rt {
    pub(crate) use loom::sync::atomic::AtomicU32;

    macro_rules! const_unless_modelled {
        ($(#[$meta:meta])* $vis:vis fn $name:ident() -> $ret:ty $body:block) => {
            $(#[$meta])*
            $vis fn $name() -> $ret $body
        };
    }
    pub(crate) use const_unless_modelled;
}

/// The kernel.
mod os {
    use loom::sync::atomic::AtomicU32;
    use loom::sync::{Condvar, Mutex};
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Errno(pub(crate) i32);

    /// Those who sleep, by their number, each at the address of a word.
    #[derive(Default)]
    struct Sleepers {
        next: usize,
        asleep: Vec<(usize, usize)>,
        is_over: bool,
    }

    loom::lazy_static! {
        static ref KERNEL: (Mutex<Sleepers>, Condvar) = Default::default();
    }

    fn wait(word: &AtomicU32, expected: u32, has_end: bool) -> Result<(), Errno> {
        let (sleepers, bell) = &*KERNEL;
        let mut held = sleepers.lock().unwrap();
        if word.load(Relaxed) != expected {
            return Err(Errno(libc::EAGAIN));
        }
        let me = held.next;
        held.next += 1;
        held.asleep.push((me, std::ptr::from_ref(word).addr()));
        loop {
            if !held.asleep.iter().any(|(who, _)| *who == me) {
                return Ok(());
            }
            if has_end && held.is_over {
                held.asleep.retain(|(who, _)| *who != me);
                return Err(Errno(libc::ETIMEDOUT));
            }
            held = bell.wait(held).unwrap();
        }
    }

    pub(crate) fn futex_wait(w: &AtomicU32, old: u32, _: Option<Duration>) -> Result<(), Errno> {
        wait(w, old, false)
    }

    pub(crate) fn futex_wait_until(word: &AtomicU32, old: u32, _: u64) -> Result<(), Errno> {
        wait(word, old, true)
    }

    pub(crate) fn futex_wake(word: *const AtomicU32, count: u32) {
        let (sleepers, bell) = &*KERNEL;
        let mut held = sleepers.lock().unwrap();
        for _ in 0..count {
            let Some(at) = held.asleep.iter().position(|(_, at)| *at == word.addr()) else { break };
            held.asleep.remove(at);
        }
        bell.notify_all();
    }

    /// The clock stands still.
    pub(crate) fn monotonic_ns() -> u64 {
        0
    }

    /// All times are over.
    pub(crate) fn time_passes() {
        let (sleepers, bell) = &*KERNEL;
        sleepers.lock().unwrap().is_over = true;
        bell.notify_all();
    }
}

use explore::explore;
use loom::cell::UnsafeCell;
use loom::thread;
use parker::Parker;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Two that tell each other, with something written before each wake. Catches: `wake` that does not
/// look for `PARKED`, or is Relaxed; `take`, or a `take_or_announce` that finds a permit, with Relaxed
/// in place of Acquire; `sleep` that goes to sleep again without having looked for the permit.
#[test]
fn a_wake_before_or_during_a_sleep_ends_it_and_shows_what_came_before() {
    explore(3, || {
        let shared = Arc::new((Parker::new(), Parker::new(), UnsafeCell::new(0_u32)));
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.sleep();
                // SAFETY: the other one sleeps, which loom checks.
                shared.2.with_mut(|count| unsafe { *count += 1 });
                shared.1.wake();
            }
        });
        // SAFETY: nobody was woken yet.
        shared.2.with_mut(|count| unsafe { *count += 1 });
        shared.0.wake();
        shared.1.sleep();
        // SAFETY: the other one has ended its use.
        assert_eq!(shared.2.with(|count| unsafe { *count }), 2);
        other.join().unwrap();
    });
}

/// Permits do not add up, and none of two wakers is missed: what the last one wrote is there after as
/// many sleeps as it takes. Catches: a `take_or_announce` that finds a permit and does not look again.
#[test]
fn two_wakers_leave_one_permit_and_both_are_heard() {
    let sleeps = explore(3, || {
        let shared = Arc::new((Parker::new(), [UnsafeCell::new(false), UnsafeCell::new(false)]));
        let done = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let wakers = [0, 1].map(|i| {
            let (shared, done) = (shared.clone(), done.clone());
            thread::spawn(move || {
                // SAFETY: its own, until it is counted.
                shared.1[i].with_mut(|is_set| unsafe { *is_set = true });
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                shared.0.wake();
            })
        });
        let mut sleeps = 0;
        while done.load(std::sync::atomic::Ordering::Relaxed) < 2 || sleeps == 0 {
            shared.0.sleep();
            sleeps += 1;
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        // SAFETY: nobody else is left.
        assert!(shared.1.iter().all(|is_set| is_set.with(|is_set| unsafe { *is_set })));
        sleeps
    });
    assert_eq!(sleeps, BTreeSet::from([1, 2]));
}

/// A time-out and a wake at once: the permit ends this sleep or is there for the next one. Catches: a
/// time-out that empties the word without looking at what was there, or leaves `PARKED` in it.
#[test]
fn a_wake_races_with_a_time_out() {
    let outcomes = explore(3, || {
        let shared = Arc::new((Parker::new(), UnsafeCell::new(0_u32)));
        let wakes = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: nobody was woken yet.
                shared.1.with_mut(|count| unsafe { *count += 1 });
                shared.0.wake();
            }
        });
        let clock = thread::spawn(os::time_passes);
        let was_woken = shared.0.sleep_until(1);
        if !was_woken {
            shared.0.sleep();
        }
        // SAFETY: the permit came after it.
        assert_eq!(shared.1.with(|count| unsafe { *count }), 1);
        wakes.join().unwrap();
        clock.join().unwrap();
        was_woken
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}
