//! Channels on one processor: who runs next, and who is kept waiting.

use gosched_channel::{Receiver, RecvError, Sender, bounded, never, select, unbounded};
use gosched_sched::{JoinHandle, SpawnOptions, counters, spawn, yield_now};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[path = "it/undisturbed.rs"]
mod undisturbed;
use undisturbed::{let_others_wait, undisturbed};

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

/// One thread, so the tests are one.
#[test]
fn on_one_processor() {
    undisturbed::on_one_processor(|| {
        a_pair_does_not_keep_a_third_out();
        a_woken_receiver_runs_next();
        the_longest_waiter_comes_first();
        a_message_costs_one_switch();
    });
}

fn echo(there: Receiver<usize>, back: Sender<usize>) {
    there.iter().for_each(|n| back.send(n).unwrap());
}

/// Two that wake each other for ever are always next; the third gets its turns all the same.
fn a_pair_does_not_keep_a_third_out() {
    let stop = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicUsize::new(0));
    let (s, there) = bounded(0);
    let (back, r) = bounded(0);
    let pair = [
        go(move || echo(there, back)),
        go({
            let (stop, rounds) = (stop.clone(), rounds.clone());
            move || {
                while !stop.load(SeqCst) {
                    s.send(rounds.fetch_add(1, SeqCst)).unwrap();
                    r.recv().unwrap();
                }
            }
        }),
    ];
    let third = go({
        let rounds = rounds.clone();
        move || {
            let mut turns = 0;
            // The pair must have been at it in between.
            while turns < 20 || rounds.load(SeqCst) < 1000 {
                yield_now();
                turns += 1;
            }
            stop.store(true, SeqCst);
        }
    });
    third.join().unwrap();
    pair.into_iter().for_each(|g| g.join().unwrap());
}

/// As in Go: the one who is woken is next, before those who were ready already, but for every 61st
/// round, which takes the one who was ready first.
fn a_woken_receiver_runs_next() {
    const TIMES: usize = 100;
    let was_next = (0..TIMES).filter(|_| undisturbed(first_of_a_woken_one_and_three_others) == 1);
    let count = was_next.count();
    // A time has several rounds, so that one in five has the 61st.
    assert!(count >= TIMES * 3 / 4, "the woken one was next {count} times of {TIMES}");
}

/// Who runs first, as a number: 1 is the one who is woken.
fn first_of_a_woken_one_and_three_others() -> u8 {
    let (log, order) = unbounded();
    let (s, r) = bounded(0);
    let receiver = go({
        let log = log.clone();
        move || {
            let n: u8 = r.recv().unwrap();
            log.send(n).unwrap();
        }
    });
    let_others_wait();
    let others: Vec<_> = (10..13)
        .map(|n| {
            let log = log.clone();
            go(move || log.send(n).unwrap())
        })
        .collect();
    s.send(1).unwrap();
    yield_now();
    let first = order.recv().unwrap();
    receiver.join().unwrap();
    others.into_iter().for_each(|g| g.join().unwrap());
    assert_eq!(order.try_iter().count(), 3);
    first
}

/// Also when some of them select: FIFO among waiters. Wherever the 61st rounds fall.
fn the_longest_waiter_comes_first() {
    for _ in 0..61 {
        assert!(undisturbed(receivers_in_order).into_iter().eq((0..10).map(Ok)));
        assert!(undisturbed(senders_in_order).into_iter().eq(0..10));
        yield_now();
    }
}

/// What ten receivers get that begin to wait one after the other.
fn receivers_in_order() -> Vec<Result<usize, RecvError>> {
    let (s, r) = bounded(0);
    let receivers: Vec<_> = (0..10)
        .map(|n| {
            let r = r.clone();
            let receiver = go(move || {
                if n % 2 == 0 {
                    return r.recv();
                }
                select! {
                    recv(r) -> message => message,
                    recv(never()) -> message => message,
                }
            });
            // It waits before the next one comes.
            let_others_wait();
            receiver
        })
        .collect();
    (0..10).for_each(|n| s.send(n).unwrap());
    receivers.into_iter().map(|g| g.join().unwrap()).collect()
}

/// What comes from ten senders that begin to wait one after the other.
fn senders_in_order() -> Vec<usize> {
    let (s, r) = bounded(0);
    let senders: Vec<_> = (0..10)
        .map(|n| {
            let s = s.clone();
            let sender = go(move || s.send(n));
            let_others_wait();
            sender
        })
        .collect();
    let sent = r.iter().take(10).collect();
    senders.into_iter().for_each(|g| assert_eq!(g.join().unwrap(), Ok(())));
    sent
}

/// There and back are two messages; no more than a switch for each, and few by way of the
/// scheduler.
fn a_message_costs_one_switch() {
    let (direct, through_scheduler) = undisturbed(switches_of_an_echo);
    let all = direct + through_scheduler;
    assert!(all <= 2 * ECHOES as u64 + 100, "{direct} direct, {through_scheduler} others");
    assert!(through_scheduler <= all / 30, "{direct} direct, {through_scheduler} others");
}

const ECHOES: usize = 10_000;

/// How many switches were direct, and how many not.
fn switches_of_an_echo() -> (u64, u64) {
    let (s, there) = bounded(0);
    let (back, r) = bounded(0);
    let other = go(move || echo(there, back));
    let before = counters();
    for n in 0..ECHOES {
        s.send(n).unwrap();
        assert_eq!(r.recv(), Ok(n));
    }
    let after = counters();
    drop(s);
    other.join().unwrap();
    (after.direct_switches - before.direct_switches, after.scheduled - before.scheduled)
}
