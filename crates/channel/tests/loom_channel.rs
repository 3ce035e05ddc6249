//! Models of the channels:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-channel --release --test loom_channel`.
//!
//! The production types on loom's locks, atomics and cells. Every message is counted when it is
//! dropped; the outcomes of a race are collected, and all that should happen must have happened.
#![cfg(loom)]

use gosched_channel::timer::Timer;
use gosched_channel::{
    Receiver, RecvTimeoutError, Select, Sender, bounded, never, select, select_biased, unbounded,
};
use loom::thread;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A message that counts its drops.
struct Message(u8, Arc<AtomicUsize>);

impl Drop for Message {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

/// Makes messages, and knows how many were made and dropped.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn message(&self, n: u8) -> Message {
        Message(n, self.0.clone())
    }

    fn dropped(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Runs `model` in every order with at most three preemptions; its results.
fn explore<T: Ord + Send + 'static>(model: impl Fn() -> T + Send + Sync + 'static) -> BTreeSet<T> {
    let results = Arc::new(Mutex::new(BTreeSet::new()));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    let seen = results.clone();
    builder.check(move || {
        let result = model();
        seen.lock().unwrap().insert(result);
    });
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn all<T: Ord + Clone>(expected: &[T]) -> BTreeSet<T> {
    expected.iter().cloned().collect()
}

#[test]
fn one_to_one() {
    for capacity in [Some(0), Some(1), None] {
        explore(move || {
            let counter = Counter::default();
            let (s, r) = capacity.map_or_else(unbounded, bounded);
            let sender = thread::spawn({
                let counter = counter.clone();
                move || (1..=2).for_each(|n| assert!(s.send(counter.message(n)).is_ok()))
            });
            let received: Vec<u8> = r.iter().map(|m| m.0).collect();
            assert_eq!(received, [1, 2]);
            sender.join().unwrap();
            assert_eq!(counter.dropped(), 2);
        });
    }
}

#[test]
fn two_to_one() {
    for capacity in [0, 1] {
        let orders = explore(move || {
            let (s, r) = bounded(capacity);
            let s2 = s.clone();
            let one = thread::spawn(move || s.send(1).unwrap());
            let two = thread::spawn(move || s2.send(2).unwrap());
            let received: Vec<u8> = r.iter().collect();
            one.join().unwrap();
            two.join().unwrap();
            received
        });
        assert_eq!(orders, all(&[vec![1, 2], vec![2, 1]]));
    }
}

/// Catches: a `Race::win` that always succeeds; a `Core::wait` that leaves its node in the queue.
#[test]
fn a_receive_that_times_out() {
    for capacity in [0, 1] {
        let outcomes = explore(move || {
            let counter = Counter::default();
            let (s, r) = bounded(capacity);
            let sender = thread::spawn({
                let message = counter.message(1);
                move || s.send(message).is_ok()
            });
            let outcome = match r.recv_deadline(later()) {
                Ok(message) => {
                    assert_eq!(message.0, 1);
                    "received"
                }
                Err(RecvTimeoutError::Timeout) => "timed out",
                Err(RecvTimeoutError::Disconnected) => unreachable!(),
            };
            drop(r);
            let was_sent = sender.join().unwrap();
            assert_eq!(counter.dropped(), 1);
            (outcome, was_sent)
        });
        assert!(outcomes.contains(&("received", true)), "{outcomes:?}");
        assert!(outcomes.contains(&("timed out", false)), "{outcomes:?}");
        assert!(!outcomes.contains(&("received", false)), "{outcomes:?}");
        assert_eq!(outcomes.contains(&("timed out", true)), capacity > 0, "{outcomes:?}");
    }
}

#[test]
fn a_send_that_times_out() {
    for capacity in [0, 1] {
        let outcomes = explore(move || {
            let counter = Counter::default();
            let (s, r) = bounded(capacity);
            (0..capacity).for_each(|_| assert!(s.send(counter.message(0)).is_ok()));
            let receiver = thread::spawn(move || r.iter().map(|m| m.0).max());
            let was_sent = s.send_deadline(counter.message(1), later()).is_ok();
            drop(s);
            let max = receiver.join().unwrap();
            assert_eq!(max == Some(1), was_sent);
            assert_eq!(counter.dropped(), 1 + capacity);
            was_sent
        });
        assert_eq!(outcomes, all(&[false, true]));
    }
}

#[test]
fn closing_against_sending() {
    for capacity in [0, 1] {
        let outcomes = explore(move || {
            let counter = Counter::default();
            let (s, r) = bounded(capacity);
            let closer = thread::spawn({
                let s = s.clone();
                move || s.close()
            });
            let receiver = thread::spawn(move || r.recv().is_ok());
            let was_sent = s.send(counter.message(1)).is_ok();
            closer.join().unwrap();
            assert_eq!(receiver.join().unwrap(), was_sent);
            drop(s);
            assert_eq!(counter.dropped(), 1);
            was_sent
        });
        assert_eq!(outcomes, all(&[false, true]));
    }
}

#[test]
fn closing_wakes_everyone() {
    explore(|| {
        let (s, r) = bounded::<u8>(0);
        let receivers = [r.clone(), r].map(|r| thread::spawn(move || r.recv().is_err()));
        assert!(s.close());
        receivers.into_iter().for_each(|r| assert!(r.join().unwrap()));
    });
}

/// Catches: a last receiver that does not drop what is left.
#[test]
fn the_last_receiver_against_a_sender() {
    for capacity in [Some(0), Some(1), None] {
        let outcomes = explore(move || {
            let counter = Counter::default();
            let (s, r) = capacity.map_or_else(unbounded, bounded);
            let dropper = thread::spawn(move || drop(r));
            let was_sent = s.send(counter.message(1)).is_ok();
            dropper.join().unwrap();
            // In the channel nobody can receive it any more.
            assert_eq!(counter.dropped(), 1);
            was_sent
        });
        assert!(outcomes.contains(&false));
        assert_eq!(outcomes.contains(&true), capacity != Some(0));
    }
}

/// Two channels, a sender each. Catches: a commit that uses the cases after its last unlock, or a
/// select that does not wait for it (I1 of `select::run`).
#[test]
fn a_select_with_two_senders() {
    for capacity in [0, 1] {
        let orders = explore(move || {
            let counter = Counter::default();
            let (s1, r1) = bounded(capacity);
            let (s2, r2) = bounded(capacity);
            let (one, two) = (counter.message(1), counter.message(2));
            let first = thread::spawn(move || s1.send(one).is_ok());
            let second = thread::spawn(move || s2.send(two).is_ok());
            let chosen = select! {
                recv(r1) -> m => m.map_or(0, |m| m.0),
                recv(r2) -> m => m.map_or(0, |m| m.0),
            };
            drop((r1, r2));
            first.join().unwrap();
            second.join().unwrap();
            assert_eq!(counter.dropped(), 2);
            chosen
        });
        assert!(orders.contains(&1) && orders.contains(&2), "{orders:?}");
    }
}

/// Catches: a receive from a full buffer that lets no waiting sender in.
#[test]
fn a_select_that_sends() {
    for capacity in [0, 1] {
        explore(move || {
            let counter = Counter::default();
            let (s, r) = bounded(capacity);
            (0..capacity).for_each(|_| assert!(s.send(counter.message(0)).is_ok()));
            let (_s2, r2) = bounded::<u8>(0);
            let receiver = thread::spawn(move || r.iter().map(|m| m.0).max());
            select! {
                send(s, counter.message(1)) -> sent => assert!(sent.is_ok()),
                recv(r2) -> _ => unreachable!(),
            }
            drop(s);
            assert_eq!(receiver.join().unwrap(), Some(1));
            assert_eq!(counter.dropped(), 1 + capacity);
        });
    }
}

/// Catches: `Core::meet` that lets go of the lock before it is suspended; `settle_and_wake` that
/// does not take it.
#[test]
fn a_select_meets_a_select() {
    explore(|| {
        let counter = Counter::default();
        let (s1, r1) = bounded(0);
        let (s2, r2) = bounded(0);
        let message = counter.message(1);
        let sender = thread::spawn(move || {
            select! {
                send(s1, message) -> sent => assert!(sent.is_ok()),
                recv(r2) -> _ => unreachable!(),
            }
        });
        select! {
            recv(r1) -> m => assert_eq!(m.map_or(0, |m| m.0), 1),
            send(s2, counter.message(2)) -> _ => unreachable!(),
            default => {
                let mut select = Select::new();
                select.recv(&r1);
                let m = select.select().recv(&r1);
                assert_eq!(m.map_or(0, |m| m.0), 1);
            }
        }
        sender.join().unwrap();
        assert_eq!(counter.dropped(), 1);
    });
}

/// Two selects in a row, on the same stack, with cases that have no lock behind those that have.
/// Catches: a commit that looks at the cases behind the last lock (I1 of `select::run`).
#[test]
fn a_select_after_a_select() {
    explore(|| {
        let (s, r) = bounded(0);
        let sender = thread::spawn(move || (1..=2).all(|n| s.send(n).is_ok()));
        for n in 1..=2 {
            select_biased! {
                recv(r) -> m => assert_eq!(m, Ok(n)),
                recv(r) -> m => assert_eq!(m, Ok(n)),
                recv(never::<u8>()) -> _ => unreachable!(),
            }
        }
        assert!(sender.join().unwrap());
    });
}

/// A channel in two cases, whose lock one of them holds for both. Catches: `lock_late` that takes a
/// lock of its own for the second, or leaves it the state of an earlier look.
#[test]
fn a_select_with_one_channel_twice() {
    explore(|| {
        let (s, r) = bounded(0);
        let (_s2, r2) = bounded::<u8>(0);
        let sender = thread::spawn(move || (1..=2).all(|n| s.send(n).is_ok()));
        for n in 1..=2 {
            select! {
                recv(r) -> m => assert_eq!(m, Ok(n)),
                recv(r2) -> _ => unreachable!(),
                recv(r) -> m => assert_eq!(m, Ok(n)),
            }
        }
        assert!(sender.join().unwrap());
    });
}

/// Two selects want the one message.
#[test]
fn two_selects_and_one_message() {
    for capacity in [0, 1] {
        let winners = explore(move || {
            let (s, r) = bounded(capacity);
            let (_s2, r2) = bounded::<u8>(0);
            let wants = |r: Receiver<u8>, other: Receiver<u8>| {
                move || {
                    select! {
                        recv(r) -> m => m.is_ok(),
                        recv(other) -> _ => unreachable!(),
                    }
                }
            };
            let first = thread::spawn(wants(r.clone(), r2.clone()));
            let second = thread::spawn(wants(r, r2));
            s.send(1).unwrap();
            drop(s);
            (first.join().unwrap(), second.join().unwrap())
        });
        assert_eq!(winners, all(&[(false, true), (true, false)]), "capacity {capacity}");
    }
}

/// Catches: `Chan::abandon` without `match_up`. A promise that is not kept goes to whoever waits.
#[test]
fn a_dropped_operation_against_a_receiver() {
    explore(|| {
        let counter = Counter::default();
        let (s, r) = bounded(1);
        assert!(s.send(counter.message(1)).is_ok());
        let receiver = thread::spawn({
            let r = r.clone();
            move || r.recv().map_or(0, |m| m.0)
        });
        let abandons = |s: Sender<Message>| {
            let mut select = Select::new();
            select.recv(&r);
            if let Ok(operation) = select.try_select() {
                // Completed with the wrong end, as a bug of a user would.
                let wrong = std::panic::AssertUnwindSafe(|| operation.send(&s, counter.message(2)));
                assert!(std::panic::catch_unwind(wrong).is_err());
            }
        };
        abandons(s.clone());
        assert_eq!(receiver.join().unwrap(), 1);
    });
}

/// Catches: a waiter, or a message, that wakes no watcher.
#[test]
fn ready_against_a_sender() {
    for capacity in [0, 1] {
        explore(move || {
            let (s, r) = bounded(capacity);
            // The end comes back: dropping it would make the channel ready too.
            let sender = thread::spawn(move || (s.send(1).is_ok(), s));
            let mut select = Select::new();
            select.recv(&r);
            assert_eq!(select.ready(), 0);
            assert_eq!(r.recv(), Ok(1));
            assert!(sender.join().unwrap().0);
        });
    }
}

/// Catches: a `Race::win` that always succeeds; a select that leaves a node in a queue when its time
/// is over.
#[test]
fn a_select_that_times_out() {
    for capacity in [0, 1] {
        let outcomes = explore(move || {
            let counter = Counter::default();
            let (s, r) = bounded(capacity);
            let (_s2, r2) = bounded::<u8>(0);
            let sender = thread::spawn({
                let message = counter.message(1);
                move || s.send(message).is_ok()
            });
            let mut select = Select::new();
            select.recv(&r);
            select.recv(&r2);
            let was_received = match select.select_deadline(later()) {
                Ok(operation) => operation.recv(&r).is_ok_and(|m| m.0 == 1),
                Err(_) => false,
            };
            drop(select);
            drop(r);
            let was_sent = sender.join().unwrap();
            assert_eq!(counter.dropped(), 1);
            (was_received, was_sent)
        });
        assert!(outcomes.contains(&(true, true)), "{outcomes:?}");
        assert!(outcomes.contains(&(false, false)), "{outcomes:?}");
        assert!(!outcomes.contains(&(true, false)), "{outcomes:?}");
        assert_eq!(outcomes.contains(&(false, true)), capacity > 0, "{outcomes:?}");
    }
}

/// A timer that was stopped, somebody who waits for it, and a setting. Catches: a waiter that looks
/// at the due time before it has the lock; a `reset` that wakes nobody.
#[test]
fn a_reset_against_a_waiter() {
    for selects in [false, true] {
        explore(move || {
            let timer = Timer::new(Duration::MAX);
            assert!(timer.stop());
            let channel = timer.c().clone();
            let waiter = thread::spawn(move || {
                if !selects {
                    return channel.recv().is_ok();
                }
                let mut select = Select::new();
                select.recv(&channel);
                select.select().recv(&channel).is_ok()
            });
            assert!(!timer.reset(Duration::ZERO));
            assert!(waiter.join().unwrap());
        });
    }
}
