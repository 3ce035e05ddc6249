//! Mutex, RwLock, Condvar and Barrier: what users of std's rely on, in goroutines and threads.

use crate::support::{ALL, PAIRS, Who, ms};
use gosched_sync::{
    Arc, Barrier, Condvar, LockCtxError, Mutex, RwLock, RwLockWriteGuard, TryLockError, context,
    mpsc,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A lock whose holder says when it is held, and lets go when it is told to.
fn hold(who: Who, mutex: &Arc<Mutex<u32>>) -> (mpsc::Sender<()>, crate::support::Running<()>) {
    let (let_go, told) = mpsc::channel();
    let (say, held) = mpsc::channel();
    let mutex = mutex.clone();
    let holder = who.start(move || {
        let mut guard = mutex.lock().unwrap();
        say.send(()).unwrap();
        told.recv().unwrap();
        *guard += 1;
    });
    held.recv().unwrap();
    (let_go, holder)
}

#[test]
fn a_mutex_excludes_and_hands_its_data_on() {
    for (one, other) in PAIRS {
        let mutex = Arc::new(Mutex::new(0));
        let (let_go, holder) = hold(one, &mutex);
        assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
        let waiter = other.start({
            let mutex = mutex.clone();
            move || *mutex.lock().unwrap()
        });
        let_go.send(()).unwrap();
        holder.join();
        assert_eq!(waiter.join(), 1);
        assert_eq!(Arc::into_inner(mutex).unwrap().into_inner().unwrap(), 1);
    }
}

#[test]
fn a_mutex_has_stds_conveniences() {
    let mut mutex = Mutex::from(1);
    *mutex.get_mut().unwrap() = 2;
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 2, poisoned: false, .. }");
    let guard = mutex.lock().unwrap();
    assert_eq!((format!("{guard:?}"), format!("{guard}")), ("2".into(), "2".into()));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked>, poisoned: false, .. }");
    drop(guard);
    assert_eq!(*Mutex::<u32>::default().lock().unwrap(), 0);
    let unsized_one: &Mutex<[u8]> = &Mutex::new([1, 2, 3]);
    unsized_one.lock().unwrap()[1] = 9;
    assert_eq!(*unsized_one.lock().unwrap(), [1, 9, 3]);
    static IN_A_CONSTANT: Mutex<u32> = Mutex::new(7);
    assert_eq!(*IN_A_CONSTANT.lock().unwrap(), 7);
}

#[test]
fn a_panic_poisons_a_mutex() {
    for who in ALL {
        let mutex = Arc::new(Mutex::new(1));
        who.start({
            let mutex = mutex.clone();
            move || {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    *mutex.lock().unwrap() = 2;
                    let _guard = mutex.lock().unwrap();
                    panic!("on purpose");
                }));
                assert!(panicked.is_err());
            }
        })
        .join();
        assert!(mutex.is_poisoned());
        assert_eq!(*mutex.lock().unwrap_err().into_inner(), 2);
        assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
        assert!(matches!(mutex.lock_ctx(&context::background()), Err(LockCtxError::Poisoned(_))));
        mutex.clear_poison();
        assert_eq!(*mutex.lock().unwrap(), 2);
    }
}

/// As std's: a lock taken and given back while its thread unwinds already is not poisoned.
#[test]
fn a_lock_within_a_drop_that_unwinds_is_not_poisoned() {
    struct Locks(Arc<Mutex<u32>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let mutex = Arc::new(Mutex::new(0));
    let locks = Locks(mutex.clone());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _locks = locks;
        panic!("on purpose");
    }));
    assert!(unwound.is_err());
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn a_cancelled_lock_gives_up_and_leaves_the_lock_whole() {
    for (one, other) in PAIRS {
        let mutex = Arc::new(Mutex::new(0));
        let (let_go, holder) = hold(one, &mutex);
        let (ctx, cancel) = context::with_cancel(&context::background());
        let waiter = other.start({
            let (mutex, ctx) = (mutex.clone(), ctx.clone());
            move || matches!(mutex.lock_ctx(&ctx), Err(LockCtxError::Cancelled))
        });
        cancel.cancel();
        assert!(waiter.join(), "cancelled while it waited");
        let_go.send(()).unwrap();
        holder.join();
        assert!(matches!(mutex.lock_ctx(&ctx), Err(LockCtxError::Cancelled)), "before it waits");
        assert_eq!(*mutex.lock_ctx(&context::background()).unwrap(), 1);
    }
}

#[test]
fn a_cancelled_writer_lets_those_behind_it_through() {
    for (one, other) in PAIRS {
        let lock = Arc::new(RwLock::new(7));
        let read = lock.read().unwrap();
        let (ctx, cancel) = context::with_cancel(&context::background());
        let writer = one.start({
            let (lock, ctx) = (lock.clone(), ctx.clone());
            move || matches!(lock.write_ctx(&ctx), Err(LockCtxError::Cancelled))
        });
        // From here on readers wait behind it.
        while lock.try_read().is_ok() {
            std::thread::yield_now();
        }
        let behind = other.start({
            let lock = lock.clone();
            move || *lock.read().unwrap()
        });
        cancel.cancel();
        assert!(writer.join(), "cancelled while it waited");
        assert_eq!(behind.join(), 7, "let in beside the first reader");
        drop(read);
        assert!(matches!(lock.read_ctx(&ctx), Err(LockCtxError::Cancelled)), "before it waits");
        assert_eq!(*lock.read_ctx(&context::background()).unwrap(), 7);
        *lock.write_ctx(&context::background()).unwrap() += 1;
        assert_eq!(*lock.read().unwrap(), 8);
    }
}

#[test]
fn readers_share_and_writers_do_not() {
    for (one, other) in PAIRS {
        let lock = Arc::new(RwLock::new(5));
        let read = lock.read().unwrap();
        let shared = one.start({
            let lock = lock.clone();
            move || *lock.read().unwrap()
        });
        assert_eq!(shared.join(), 5);
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        let (say, begun) = mpsc::channel();
        let writer = other.start({
            let lock = lock.clone();
            move || {
                say.send(()).unwrap();
                *lock.write().unwrap() = 6;
            }
        });
        begun.recv().unwrap();
        drop(read);
        writer.join();
        assert_eq!(*lock.try_read().unwrap(), 6);
        let mut write = lock.write().unwrap();
        assert!(matches!(lock.try_read(), Err(TryLockError::WouldBlock)));
        *write = 7;
        let read = RwLockWriteGuard::downgrade(write);
        assert_eq!(*lock.try_read().unwrap(), 7);
        assert!(lock.try_write().is_err());
        drop(read);
        assert!(lock.try_write().is_ok());
    }
}

/// A waiting writer keeps later readers out, so that it gets in.
#[test]
fn readers_do_not_overtake_a_waiting_writer() {
    let lock = Arc::new(RwLock::new(0));
    let read = lock.read().unwrap();
    let writer = Who::Goroutine.start({
        let lock = lock.clone();
        move || *lock.write().unwrap() += 1
    });
    while lock.try_read().is_ok() {
        gosched_sched::yield_now();
    }
    let late = Who::Goroutine.start({
        let lock = lock.clone();
        move || *lock.read().unwrap()
    });
    drop(read);
    writer.join();
    assert!(late.join() <= 1);
}

#[test]
fn a_panic_of_a_writer_poisons_and_of_a_reader_does_not() {
    let lock = RwLock::new(1);
    let reader = catch_unwind(AssertUnwindSafe(|| {
        let _read = lock.read().unwrap();
        panic!("on purpose");
    }));
    assert!(reader.is_err() && !lock.is_poisoned());
    let writer = catch_unwind(AssertUnwindSafe(|| {
        let _write = lock.write().unwrap();
        panic!("on purpose");
    }));
    assert!(writer.is_err() && lock.is_poisoned());
    assert!(lock.read().is_err() && lock.write().is_err());
    assert!(matches!(lock.try_read(), Err(TryLockError::Poisoned(_))));
    lock.clear_poison();
    assert_eq!(lock.into_inner().unwrap(), 1);
}

#[test]
fn waiters_are_notified_in_order() {
    for who in ALL {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let (say, woken) = mpsc::channel();
        let waiters: Vec<_> = (0..4)
            .map(|n| {
                let (shared, say) = (shared.clone(), say.clone());
                let waiter = who.start({
                    let shared = shared.clone();
                    move || {
                        let mut count = shared.0.lock().unwrap();
                        *count += 1;
                        drop(shared.1.wait(count).unwrap());
                        say.send(n).unwrap();
                    }
                });
                while *shared.0.lock().unwrap() <= n {
                    gosched_sched::sleep(ms(1));
                }
                waiter
            })
            .collect();
        for n in 0..4 {
            shared.1.notify_one();
            assert_eq!(woken.recv(), Ok(n));
        }
        waiters.into_iter().for_each(|w| w.join());
    }
}

#[test]
fn all_are_notified() {
    for who in ALL {
        let shared = Arc::new((Mutex::new((0, false)), Condvar::new()));
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let shared = shared.clone();
                who.start(move || {
                    let mut state = shared.0.lock().unwrap();
                    state.0 += 1;
                    let state = shared.1.wait_while(state, |state| !state.1).unwrap();
                    assert!(state.1);
                })
            })
            .collect();
        while shared.0.lock().unwrap().0 < 10 {
            gosched_sched::sleep(ms(1));
        }
        shared.0.lock().unwrap().1 = true;
        shared.1.notify_all();
        waiters.into_iter().for_each(|w| w.join());
    }
}

#[test]
fn a_wait_ends_by_time_or_context() {
    for who in ALL {
        who.start(|| {
            let (mutex, bell) = (Mutex::new(3), Condvar::new());
            let (guard, result) = bell.wait_timeout(mutex.lock().unwrap(), ms(1)).unwrap();
            assert!(result.timed_out() && *guard == 3);
            let (guard, result) = bell.wait_timeout_while(guard, ms(1), |n| *n == 3).unwrap();
            assert!(result.timed_out());
            let (guard, result) = bell.wait_timeout_while(guard, ms(1), |n| *n != 3).unwrap();
            assert!(!result.timed_out());
            let (ctx, _cancel) = context::with_timeout(&context::background(), ms(1));
            let (guard, result) = bell.wait_ctx(guard, &ctx).unwrap();
            assert!(result.cancelled());
            let (_guard, result) = bell.wait_ctx(guard, &ctx).unwrap();
            assert!(result.cancelled(), "before it waits");
            bell.notify_one();
            bell.notify_all();
        })
        .join();
    }
}

#[test]
fn a_wait_gives_back_a_poisoned_guard() {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let waiter = Who::Goroutine.start({
        let shared = shared.clone();
        move || {
            let mut guard = shared.0.lock().unwrap();
            *guard = 1;
            shared.1.wait(guard).is_err()
        }
    });
    while *shared.0.lock().unwrap() == 0 {
        gosched_sched::yield_now();
    }
    let poisoned = catch_unwind(AssertUnwindSafe(|| {
        let _guard = shared.0.lock().unwrap();
        panic!("on purpose");
    }));
    assert!(poisoned.is_err());
    shared.1.notify_all();
    assert!(waiter.join());
}

#[test]
fn a_barrier_lets_go_together_with_one_leader() {
    const SIZE: usize = 8;
    for (one, other) in PAIRS {
        let shared = Arc::new((Barrier::new(SIZE), AtomicUsize::new(0), AtomicUsize::new(0)));
        let all: Vec<_> = (0..SIZE)
            .map(|n| {
                let shared = shared.clone();
                (if n % 2 == 0 { one } else { other }).start(move || {
                    for round in 1..=20 {
                        shared.1.fetch_add(1, SeqCst);
                        if shared.0.wait().is_leader() {
                            shared.2.fetch_add(1, SeqCst);
                        }
                        assert!(shared.1.load(SeqCst) >= round * SIZE, "let go too early");
                        shared.0.wait();
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|w| w.join());
        assert_eq!(shared.2.load(SeqCst), 20);
    }
    assert!(Barrier::new(0).wait().is_leader());
    assert!(Barrier::new(1).wait().is_leader());
}

/// A guard is the goroutine's, not the thread's: it is held across waits that change threads.
#[test]
fn a_guard_is_held_across_waits() {
    let shared = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let all: Vec<_> = (0..20)
        .map(|_| {
            let shared = shared.clone();
            Who::Goroutine.start(move || {
                for _ in 0..20 {
                    let mut guard = shared.0.lock().unwrap();
                    assert_eq!(shared.1.fetch_add(1, SeqCst), 0, "two hold it");
                    gosched_sched::yield_now();
                    *guard += 1;
                    shared.1.fetch_sub(1, SeqCst);
                }
            })
        })
        .collect();
    all.into_iter().for_each(|w| w.join());
    assert_eq!(*shared.0.lock().unwrap(), 400);
}
