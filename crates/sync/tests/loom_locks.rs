//! Models of the locks:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-sync --release --test loom_locks`.
//!
//! The production types on loom's atomics, cells and locks. Loom fails when two hold a lock at once
//! (the data is a cell that it watches), and when somebody waits for ever. The outcomes of a race
//! are collected, and all that should happen must have happened. Each test names changes of the
//! code that it is known to catch.
#![cfg(loom)]

use gosched_sync::{
    Aged, Cancellation, Condvar, LockCtxError, Mutex, Once, Parts, RwLock, Semaphore, WaitGroup,
    World,
};
use loom::cell::UnsafeCell;
use loom::thread;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// In which models run: the plain ones, and where mutexes are asymmetric.
const PLAIN: [World; 3] = [
    World { time_passes: false, spins: false, asymmetric: false },
    World { time_passes: true, spins: false, asymmetric: false },
    World { time_passes: false, spins: true, asymmetric: false },
];
const ASYMMETRIC: [World; 3] = [
    World { asymmetric: true, ..PLAIN[0] },
    World { asymmetric: true, ..PLAIN[1] },
    World { asymmetric: true, ..PLAIN[2] },
];

/// Runs `model` in every order with at most `preemptions` preemptions, in each plain world; its
/// results.
fn explore<T: Ord + Send + 'static>(
    preemptions: usize,
    model: impl Fn() -> T + Send + Sync + Copy + 'static,
) -> BTreeSet<T> {
    explore_in(&PLAIN, preemptions, model)
}

/// The same for mutexes, also where they are asymmetric.
fn explore_mutex<T: Ord + Send + 'static>(
    preemptions: usize,
    model: impl Fn() -> T + Send + Sync + Copy + 'static,
) -> BTreeSet<T> {
    let mut results = explore_in(&PLAIN, preemptions, model);
    results.append(&mut explore_in(&ASYMMETRIC, preemptions, model));
    results
}

/// The same in these worlds.
fn explore_in<T: Ord + Send + 'static>(
    worlds: &[World],
    preemptions: usize,
    model: impl Fn() -> T + Send + Sync + Copy + 'static,
) -> BTreeSet<T> {
    let results = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    for world in worlds {
        world.begin();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3).min(preemptions));
        let seen = results.clone();
        builder.check(move || {
            let result = model();
            seen.lock().unwrap().insert(result);
        });
    }
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}

/// What a lock guards; loom checks each access.
#[derive(Default)]
struct Watched(UnsafeCell<u32>);

// SAFETY: loom checks each access.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn add(&self) {
        self.0.with_mut(|n| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *n += 1 }
        });
    }

    fn get(&self) -> u32 {
        self.0.with(|n| {
            // SAFETY: loom has just checked that nobody writes.
            unsafe { *n }
        })
    }
}

/// Catches: `unlock` that doesn't settle; `take_or_queue` that queues without looking at the lock
/// after W1; a woken waiter that does not clear WOKEN; `settle` that gives the lock without taking it; `unlock` with Relaxed; W2, or
/// `release` without a barrier.
#[test]
fn three_lock_and_unlock() {
    explore_mutex(2, || {
        let shared = Arc::new((Mutex::new(()), Watched::default()));
        let add = |shared: Arc<(Mutex<()>, Watched)>| {
            let _guard = shared.0.lock().unwrap();
            shared.1.add();
        };
        let threads = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || add(shared))
        });
        add(shared.clone());
        threads.into_iter().for_each(|t| t.join().unwrap());
        let _guard = shared.0.lock().unwrap();
        assert_eq!(shared.1.get(), 3);
    });
}

/// One locks twice: the lock is taken, given away and taken again while somebody waits.
#[test]
fn one_locks_twice() {
    explore_mutex(3, || {
        let shared = Arc::new((Mutex::new(()), Watched::default()));
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.lock().unwrap();
                shared.1.add();
            }
        });
        for _ in 0..2 {
            let _guard = shared.0.lock().unwrap();
            shared.1.add();
        }
        other.join().unwrap();
        assert_eq!(shared.1.get(), 3);
    });
}

/// A wait that is cancelled at any moment. Catches: `lock_contended` that does not take its node out
/// (a later unlock uses a dead frame); `give` that keeps the lock when all waits have ended.
#[test]
fn a_cancelled_lock() {
    let outcomes = explore_mutex(3, || {
        let shared = Arc::new((Mutex::new(()), Watched::default()));
        let other = thread::spawn({
            let shared = shared.clone();
            move || match shared.0.lock_ctx(&Cancellation) {
                Ok(_guard) => {
                    shared.1.add();
                    true
                }
                Err(LockCtxError::Cancelled) => false,
                Err(LockCtxError::Poisoned(_)) => unreachable!(),
            }
        });
        for _ in 0..2 {
            let _guard = shared.0.lock().unwrap();
            shared.1.add();
        }
        let locked = other.join().unwrap();
        let _guard = shared.0.try_lock().expect("free");
        assert_eq!(shared.1.get(), 2 + u32::from(locked));
        locked
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// The same beside one who waits for ever. Catches: `wake_first` that leaves WOKEN when it wakes
/// nobody.
#[test]
fn a_cancelled_lock_beside_another() {
    explore_in(&[PLAIN[0], ASYMMETRIC[0]], 2, || {
        let shared = Arc::new((Mutex::new(()), Watched::default()));
        let cancelled = thread::spawn({
            let shared = shared.clone();
            move || drop(shared.0.lock_ctx(&Cancellation))
        });
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.lock().unwrap();
                shared.1.add();
            }
        });
        for _ in 0..2 {
            let _guard = shared.0.lock().unwrap();
            shared.1.add();
        }
        cancelled.join().unwrap();
        other.join().unwrap();
        let _guard = shared.0.try_lock().expect("free");
        assert_eq!(shared.1.get(), 3);
    });
}

/// Catches: readers that join although a writer has the lock; `write_unlock` that doesn't settle;
/// `let_readers_in` that does not keep its own share until all are in.
#[test]
fn two_readers_and_a_writer() {
    let seen = explore(2, || {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let readers = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let _guard = shared.0.read().unwrap();
                shared.1.get()
            })
        });
        {
            let _guard = shared.0.write().unwrap();
            shared.1.add();
        }
        readers.map(|r| r.join().unwrap())
    });
    assert_eq!(seen, BTreeSet::from([[0, 0], [0, 1], [1, 0], [1, 1]]));
}

/// Catches: `give` or `wake_first` that takes a lock which somebody else has just taken.
#[test]
fn two_writers_and_a_reader() {
    let seen = explore(2, || {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let write = |shared: &(RwLock<()>, Watched)| {
            let _guard = shared.0.write().unwrap();
            shared.1.add();
        };
        let writer = thread::spawn({
            let shared = shared.clone();
            move || write(&shared)
        });
        let reader = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.read().unwrap();
                shared.1.get()
            }
        });
        write(&shared);
        writer.join().unwrap();
        let seen = reader.join().unwrap();
        assert_eq!(shared.0.try_write().map(|_| shared.1.get()).unwrap(), 2);
        seen
    });
    assert_eq!(seen, BTreeSet::from([0, 1, 2]));
}

/// One that gives up if it waits too long.
fn write_unless_cancelled(shared: &(RwLock<()>, Watched)) -> bool {
    match shared.0.write_ctx(&Cancellation) {
        Ok(_guard) => {
            shared.1.add();
            true
        }
        Err(LockCtxError::Cancelled) => false,
        Err(LockCtxError::Poisoned(_)) => unreachable!(),
    }
}

/// Catches: `give` that looks at the first in the queue twice; a wait that ends and leaves the
/// readers behind it in the queue.
#[test]
fn a_cancelled_write_between_a_writer_and_a_reader() {
    let outcomes = explore(2, || {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || write_unless_cancelled(&shared)
        });
        let reader = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.read().unwrap();
                shared.1.get()
            }
        });
        {
            let _guard = shared.0.write().unwrap();
            shared.1.add();
        }
        let wrote = writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(shared.0.try_write().map(|_| shared.1.get()).unwrap(), 1 + u32::from(wrote));
        wrote
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// Catches: as above, for a reader whose wait ends while the lock becomes free.
#[test]
fn a_cancelled_read() {
    let outcomes = explore(3, || {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let reader = thread::spawn({
            let shared = shared.clone();
            move || match shared.0.read_ctx(&Cancellation) {
                Ok(_guard) => {
                    shared.1.get();
                    true
                }
                Err(LockCtxError::Cancelled) => false,
                Err(LockCtxError::Poisoned(_)) => unreachable!(),
            }
        });
        for _ in 0..2 {
            let _guard = shared.0.write().unwrap();
            shared.1.add();
        }
        let read = reader.join().unwrap();
        assert_eq!(shared.0.try_write().map(|_| shared.1.get()).unwrap(), 2);
        read
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// Catches: `downgrade` that leaves the lock for a moment.
#[test]
fn downgrade_keeps_writers_out() {
    explore(3, || {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                let _guard = shared.0.write().unwrap();
                shared.1.add();
            }
        });
        let write = shared.0.write().unwrap();
        shared.1.add();
        let before = shared.1.get();
        let read = gosched_sync::RwLockWriteGuard::downgrade(write);
        assert_eq!(shared.1.get(), before);
        drop(read);
        writer.join().unwrap();
        assert_eq!(shared.1.get(), 2);
    });
}

/// Catches: `enter` after the mutex was let go (the notification is lost).
#[test]
fn a_notification_is_not_lost() {
    explore_mutex(3, || {
        let shared = Arc::new((Mutex::new(()), Condvar::new(), Watched::default()));
        let waiter = thread::spawn({
            let shared = shared.clone();
            move || {
                let mut guard = shared.0.lock().unwrap();
                while shared.2.get() == 0 {
                    guard = shared.1.wait(guard).unwrap();
                }
            }
        });
        {
            let _guard = shared.0.lock().unwrap();
            shared.2.add();
        }
        shared.1.notify_one();
        waiter.join().unwrap();
    });
}

/// One waits with a time-out beside one without; a notification that the first gets it passes on.
/// Catches: an `end` that does not race with `claim`, or a `notify` that counts one whose wait has
/// ended (the notification is lost, and the other waits for ever).
#[test]
fn a_notification_against_a_timeout() {
    // The mutex's own orders are those of the tests above, as are starving and spinning.
    let outcomes = explore_in(&PLAIN[..1], 2, || {
        let shared = Arc::new((Mutex::new(()), Condvar::new(), Watched::default()));
        let late = thread::spawn({
            let shared = shared.clone();
            move || {
                let guard = shared.0.lock().unwrap();
                let an_hour = Duration::from_secs(3600);
                let (guard, result) = shared.1.wait_timeout(guard, an_hour).unwrap();
                drop(guard);
                if !result.timed_out() {
                    shared.1.notify_one();
                }
                result.timed_out()
            }
        });
        let teller = thread::spawn({
            let shared = shared.clone();
            move || {
                let guard = shared.0.lock().unwrap();
                shared.2.add();
                drop(guard);
                shared.1.notify_one();
            }
        });
        let mut guard = shared.0.lock().unwrap();
        while shared.2.get() == 0 {
            guard = shared.1.wait(guard).unwrap();
        }
        drop(guard);
        teller.join().unwrap();
        late.join().unwrap()
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// Catches: `release` that does not settle; `settle` that takes no permits; `take_or_queue` that
/// does not look under the lock.
#[test]
fn two_take_the_only_permit() {
    explore(3, || {
        let shared = Arc::new((Semaphore::new(1), Watched::default()));
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                let _permit = shared.0.acquire();
                shared.1.add();
            }
        });
        {
            let _permit = shared.0.acquire();
            shared.1.add();
        }
        other.join().unwrap();
        assert_eq!(shared.0.available_permits(), 1);
        assert!(shared.0.try_acquire().is_some(), "WAITING was left");
        assert_eq!(shared.1.get(), 2);
    });
}

/// Catches: `acquire_contended` that does not settle when its wait ends (one behind it, who wants
/// less, waits for ever); a failed claim that keeps the permits.
#[test]
fn a_timeout_lets_others_through() {
    let outcomes = explore(2, || {
        let semaphore = Arc::new(Semaphore::new(2));
        let held = semaphore.acquire();
        let late = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.acquire_timeout(Duration::from_secs(3600)).is_ok()
        });
        let other = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(semaphore.acquire_many(2))
        });
        drop(held);
        let got = late.join().unwrap();
        other.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
        got
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// Catches: `Running::drop` with a relaxed store, or a state that is read relaxed (what the function
/// wrote is not visible); `wait_while` that queues without looking under the lock.
#[test]
fn once_for_three() {
    explore(2, || {
        let shared = Arc::new((Once::new(), Watched::default()));
        let call = |shared: &(Once, Watched)| {
            shared.0.call_once(|| shared.1.add());
            assert_eq!(shared.1.get(), 1);
        };
        let threads = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || call(&shared))
        });
        call(&shared);
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// Catches: `wait` that queues without looking at the count under the lock; `done_with_waiters` that
/// leaves WAITING.
#[test]
fn a_group_waits_for_two() {
    explore(3, || {
        let shared = Arc::new((WaitGroup::new(), [Watched::default(), Watched::default()]));
        shared.0.add(2);
        let threads = [0, 1].map(|i| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1[i].add();
                shared.0.done();
            })
        });
        shared.0.wait();
        assert_eq!(shared.1.each_ref().map(Watched::get), [1, 1]);
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// The count falls to zero and rises again at once: who waits for the second time is let go by the
/// second fall only. Catches what the one above does.
#[test]
fn a_group_is_used_again() {
    explore(2, || {
        let shared = Arc::new((WaitGroup::new(), Watched::default()));
        shared.0.add(1);
        let waits = thread::spawn({
            let shared = shared.clone();
            move || shared.0.wait()
        });
        shared.0.done();
        shared.0.add(1);
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.add();
                shared.0.done();
            }
        });
        shared.0.wait();
        assert_eq!(shared.1.get(), 1);
        waits.join().unwrap();
        other.join().unwrap();
    });
}

/// A wait that is cancelled at any moment.
#[test]
fn a_cancelled_wait_for_a_group() {
    let outcomes = explore(3, || {
        let shared = Arc::new((WaitGroup::new(), Watched::default()));
        shared.0.add(1);
        let waits = thread::spawn({
            let shared = shared.clone();
            move || {
                let is_done = shared.0.wait_ctx(&Cancellation).is_ok();
                if is_done {
                    assert_eq!(shared.1.get(), 1);
                }
                is_done
            }
        });
        shared.1.add();
        shared.0.done();
        let is_done = waits.join().unwrap();
        shared.0.wait();
        is_done
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

/// A value of a pool, which says where it went.
struct Value(usize, Arc<[AtomicUsize; 3]>);

impl Drop for Value {
    fn drop(&mut self) {
        self.1[self.0].fetch_add(1, Relaxed);
    }
}

/// Two put and take while a cycle ages their parts: each value is somebody's once, and dropped once,
/// and all that may come of it does.
#[test]
fn values_of_a_pool_are_dropped_once() {
    let outcomes = explore(3, || {
        let dropped = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let parts = Arc::new(Parts::new(2));
        let value = |i| Value(i, dropped.clone());
        parts.put(value(0));
        let ages = thread::spawn({
            let parts = parts.clone();
            move || (0..2).for_each(|_| parts.age())
        });
        let other = thread::spawn({
            let (parts, value) = (parts.clone(), value(1));
            move || {
                parts.put(value);
                parts.take().map(|value| value.0)
            }
        });
        let mine = parts.take().map(|value| value.0);
        parts.put(value(2));
        let others = other.join().unwrap();
        ages.join().unwrap();
        assert!(mine.is_none() || mine != others, "two have {mine:?}");
        let left: Vec<_> = std::iter::from_fn(|| parts.take()).map(|value| value.0).collect();
        drop(parts);
        let drops = dropped.each_ref().map(|count| count.load(Relaxed));
        assert_eq!(drops, [1, 1, 1]);
        (mine, others, left)
    });
    assert!(outcomes.iter().any(|(mine, ..)| *mine == Some(0)), "it is found while it is warm");
    assert!(outcomes.iter().any(|(mine, ..)| *mine == Some(1)), "the other's part is looked into");
    assert!(outcomes.iter().any(|(mine, ..)| mine.is_none()), "it is dropped when it is old");
    assert!(outcomes.iter().any(|(.., left)| left.is_empty()), "all are dropped in the end");
}
