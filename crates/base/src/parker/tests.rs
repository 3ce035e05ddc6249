//! Tests of the parker.

use super::Parker;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn every_wake_is_seen() {
    let (parker, back) = (Parker::new(), Parker::new());
    let round = AtomicU64::new(0);
    thread::scope(|s| {
        s.spawn(|| {
            for i in 1..=20_000 {
                parker.sleep();
                assert_eq!(round.load(SeqCst), i);
                back.wake();
            }
        });
        for i in 1..=20_000 {
            round.store(i, SeqCst);
            parker.wake();
            back.sleep();
        }
    });
}

#[test]
fn times_out_without_a_permit_and_keeps_a_late_one() {
    let parker = Parker::new();
    let start = Instant::now();
    assert!(!parker.sleep_for(Duration::from_millis(5)));
    assert!(start.elapsed() >= Duration::from_millis(5));
    parker.wake();
    assert!(parker.sleep_for(Duration::MAX));
}
