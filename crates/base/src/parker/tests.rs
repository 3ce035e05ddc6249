//! Tests of the parker.

use super::Parker;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: u64 = if cfg!(miri) { 30 } else { 4_000 };

#[test]
fn every_wake_is_seen() {
    wakes_are_seen_by(Parker::sleep);
}

#[test]
fn every_wake_is_seen_by_the_patient() {
    wakes_are_seen_by(|parker| parker.sleep_patiently(0));
    wakes_are_seen_by(|parker| parker.sleep_patiently(1_000));
    wakes_are_seen_by(|parker| parker.sleep_patiently(100_000));
}

fn wakes_are_seen_by(sleep: impl Fn(&Parker) + Sync) {
    let (parker, back) = (Parker::new(), Parker::new());
    let round = AtomicU64::new(0);
    thread::scope(|s| {
        s.spawn(|| {
            for i in 1..=ROUNDS {
                sleep(&parker);
                assert_eq!(round.load(SeqCst), i);
                back.wake();
            }
        });
        for i in 1..=ROUNDS {
            round.store(i, SeqCst);
            parker.wake();
            sleep(&back);
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
