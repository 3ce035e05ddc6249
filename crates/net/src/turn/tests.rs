use super::{Taken, Turn};
use gosched_sched::{Critical, JoinHandle, SpawnOptions, spawn};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[track_caller]
fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: nothing is borrowed, and all may cross threads.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.unwrap()
}

fn is_waited_for(turn: &Turn) -> bool {
    let _critical = Critical::enter();
    !turn.queue.lock().first.is_null()
}

#[test]
fn one_has_it_at_a_time_and_all_get_it() {
    gosched_sched::run(|| {
        let turn = Arc::new(Turn::new());
        let holders = Arc::new(AtomicU32::new(0));
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let (turn, holders) = (turn.clone(), holders.clone());
                go(move || {
                    let mut waits = 0;
                    for _ in 0..1000 {
                        waits += u32::from(turn.take(None, None) == Taken::AfterAnother);
                        assert_eq!(holders.fetch_add(1, SeqCst), 0);
                        gosched_sched::yield_now();
                        holders.fetch_sub(1, SeqCst);
                        turn.give();
                    }
                    waits
                })
            })
            .collect();
        let waits: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert!(waits > 100, "hardly any of 8000 had to wait: {waits}");
        assert_eq!(turn.take(None, None), Taken::AtOnce);
    });
}

#[test]
fn who_is_too_late_leaves_the_queue_to_the_others() {
    gosched_sched::run(|| {
        let turn = Arc::new(Turn::new());
        assert_eq!(turn.take(None, None), Taken::AtOnce);
        let late = || turn.take(Some(Instant::now() + Duration::from_millis(1)), None);
        assert_eq!(late(), Taken::TooLate);
        let patient = go({
            let turn = turn.clone();
            move || turn.take(None, None)
        });
        while !is_waited_for(&turn) {
            gosched_sched::yield_now();
        }
        assert_eq!(late(), Taken::TooLate);
        turn.give();
        assert_eq!(patient.join().unwrap(), Taken::AfterAnother);
        turn.give();
        assert_eq!(turn.take(None, None), Taken::AtOnce);
    });
}

#[test]
fn those_who_wait_can_be_made_to_look_again() {
    let turn = Arc::new(Turn::new());
    assert_eq!(turn.take(None, None), Taken::AtOnce);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let turn = turn.clone();
            // Plain threads wait as well.
            std::thread::spawn(move || turn.take(None, None))
        })
        .collect();
    // However late they come: they are called again and again until all have been there.
    while waiters.iter().any(|waiter| !waiter.is_finished()) {
        turn.look_again();
        std::thread::yield_now();
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Taken::LookAgain);
    }
}
