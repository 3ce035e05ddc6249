//! Wait groups.

use crate::support::{ALL, PAIRS, Who, ms};
use gosched_sync::{Arc, WaitError, WaitGroup, context};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn a_wait_ends_when_all_are_done_again_and_again() {
    for (one, other) in PAIRS {
        let shared = Arc::new((WaitGroup::new(), AtomicUsize::new(0)));
        for round in 1..=20 {
            shared.0.add(8);
            let waiters = [one, other].map(|who| {
                let shared = shared.clone();
                who.start(move || {
                    shared.0.wait();
                    shared.1.load(SeqCst)
                })
            });
            let workers: Vec<_> = (0..8)
                .map(|n| {
                    let shared = shared.clone();
                    (if n % 2 == 0 { one } else { other }).start(move || {
                        shared.1.fetch_add(1, SeqCst);
                        shared.0.done();
                    })
                })
                .collect();
            assert_eq!(waiters.map(|w| w.join()), [8 * round; 2]);
            workers.into_iter().for_each(|w| w.join());
        }
    }
}

#[test]
fn below_zero_is_the_callers_bug() {
    assert!(catch_unwind(|| WaitGroup::new().done()).is_err());
    let group = WaitGroup::new();
    group.add(1);
    group.done();
    assert!(catch_unwind(|| group.clone().done()).is_err());
    group.wait();
}

#[test]
fn waits_end_by_time_or_context() {
    for who in ALL {
        who.start(|| {
            let group = WaitGroup::new();
            group.wait();
            assert_eq!(group.wait_timeout(ms(1)), Ok(()));
            group.add(1);
            assert_eq!(group.wait_timeout(ms(1)), Err(WaitError::Timeout));
            let (ctx, _cancel) = context::with_timeout(&context::background(), ms(1));
            assert_eq!(group.wait_ctx(&ctx), Err(WaitError::Cancelled));
            group.done();
            assert_eq!(group.wait_ctx(&ctx), Err(WaitError::Cancelled), "before it waits");
            assert_eq!(group.wait_ctx(&context::background()), Ok(()));
        })
        .join();
    }
}

#[test]
fn goroutines_count_until_they_end_even_by_a_panic() {
    let (group, ran) = (WaitGroup::new(), Arc::new(AtomicUsize::new(0)));
    for n in 0..10 {
        let ran = ran.clone();
        group.go(move || {
            ran.fetch_add(1, SeqCst);
            assert!(n != 5, "on purpose");
        });
    }
    group.wait();
    assert_eq!(ran.load(SeqCst), 10);
}

/// The count may rise again while those who waited for its fall are on their way.
#[test]
fn a_group_is_used_again_at_once() {
    let group = WaitGroup::new();
    for _ in 0..2000 {
        group.add(1);
        let waiter = Who::Goroutine.start({
            let group = group.clone();
            move || group.wait()
        });
        group.done();
        group.add(1);
        group.done();
        waiter.join();
    }
}
