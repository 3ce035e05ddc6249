//! Semaphores: permits, order, and waits that end.

use crate::support::{ALL, PAIRS, Who, ms};
use gosched_sync::{AcquireError, Arc, Semaphore, context, mpsc};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn permits_are_counted() {
    let semaphore = Semaphore::new(3);
    let two = semaphore.acquire_many(2);
    assert_eq!((two.permits(), semaphore.available_permits()), (2, 1));
    assert!(semaphore.try_acquire_many(2).is_none());
    let one = semaphore.try_acquire().unwrap();
    assert!(semaphore.try_acquire().is_none());
    assert!(semaphore.try_acquire_many(4).is_none(), "more than there are");
    drop((one, two));
    assert_eq!(semaphore.available_permits(), 3);
    assert_eq!(semaphore.acquire_many(0).permits(), 0);
}

#[test]
fn what_could_never_be_had_is_the_callers_bug() {
    assert!(catch_unwind(|| drop(Semaphore::new(2).acquire_many(3))).is_err());
    assert!(catch_unwind(|| drop(Semaphore::new(0).acquire())).is_err());
    assert!(catch_unwind(|| drop(Semaphore::new(0).acquire_timeout(ms(1)))).is_err());
}

#[test]
fn no_more_than_the_permits_run_at_once() {
    for (one, other) in PAIRS {
        let shared = Arc::new((Semaphore::new(3), AtomicUsize::new(0), AtomicUsize::new(0)));
        let all: Vec<_> = (0..12)
            .map(|n| {
                let shared = shared.clone();
                (if n % 2 == 0 { one } else { other }).start(move || {
                    for _ in 0..20 {
                        let _permit = shared.0.acquire();
                        let running = shared.1.fetch_add(1, SeqCst) + 1;
                        shared.2.fetch_max(running, SeqCst);
                        gosched_sched::yield_now();
                        shared.1.fetch_sub(1, SeqCst);
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|w| w.join());
        let most = shared.2.load(SeqCst);
        assert!(most <= 3, "{most} at once");
        assert_eq!(shared.0.available_permits(), 3);
    }
}

/// One who wants many is not overtaken by those who want few, not even by `try_acquire`.
#[test]
fn the_first_is_served_first() {
    for who in ALL {
        let semaphore = Arc::new(Semaphore::new(3));
        let held = semaphore.acquire_many(2);
        let (say, got) = mpsc::channel();
        let many = who.start({
            let (semaphore, say) = (semaphore.clone(), say.clone());
            move || {
                let _permit = semaphore.acquire_many(3);
                say.send(3).unwrap();
            }
        });
        while semaphore.try_acquire().is_some() {
            gosched_sched::sleep(ms(1));
        }
        let few = who.start({
            let semaphore = semaphore.clone();
            move || {
                let _permit = semaphore.acquire();
                say.send(1).unwrap();
            }
        });
        drop(held);
        assert_eq!((got.recv(), got.recv()), (Ok(3), Ok(1)));
        many.join();
        few.join();
    }
}

#[test]
fn a_wait_ends_by_time_or_context_and_lets_others_through() {
    for who in ALL {
        let semaphore = Arc::new(Semaphore::new(2));
        let held = semaphore.acquire_many(2);
        let (ctx, cancel) = context::with_cancel(&context::background());
        let late = who.start({
            let (semaphore, ctx) = (semaphore.clone(), ctx.clone());
            move || {
                let timeout = semaphore.acquire_timeout(ms(1)).map(|_| ());
                (timeout, semaphore.acquire_ctx(&ctx).map(|_| ()))
            }
        });
        gosched_sched::sleep(crate::support::SHORT);
        cancel.cancel();
        assert_eq!(late.join(), (Err(AcquireError::Timeout), Err(AcquireError::Cancelled)));
        assert_eq!(semaphore.acquire_ctx(&ctx).err(), Some(AcquireError::Cancelled));
        drop(held);
        assert!(semaphore.try_acquire_many(2).is_some(), "nothing is left behind");
        assert!(semaphore.acquire_ctx(&context::background()).is_ok());
        assert!(semaphore.acquire_timeout(ms(1)).is_ok());
    }
}

/// One that gives up lets the one behind it through, who wants less.
#[test]
fn one_that_gives_up_does_not_keep_others_waiting() {
    let semaphore = Arc::new(Semaphore::new(2));
    let _held = semaphore.acquire();
    let (ctx, cancel) = context::with_cancel(&context::background());
    let gives_up = Who::Goroutine.start({
        let (semaphore, ctx) = (semaphore.clone(), ctx.clone());
        move || {
            let held = semaphore.acquire();
            let result = semaphore.acquire_ctx(&ctx).map(|_| ());
            drop(held);
            result
        }
    });
    while semaphore.try_acquire().is_some() {
        gosched_sched::yield_now();
    }
    let behind = Who::Goroutine.start({
        let semaphore = semaphore.clone();
        move || drop(semaphore.acquire())
    });
    cancel.cancel();
    assert_eq!(gives_up.join(), Err(AcquireError::Cancelled));
    behind.join();
}
