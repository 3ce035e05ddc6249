//! Channels on one processor: who runs next, and who is kept waiting.

use gosched_channel::{Receiver, Sender, bounded, never, select, unbounded};
use gosched_sched::{Config, JoinHandle, SpawnOptions, counters, run, spawn};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

/// One thread, so the tests are one.
#[test]
fn on_one_processor() {
    let _ = Config::new().procs(1).start();
    run(|| {
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
    let third = go(move || {
        for _ in 0..20 {
            gosched_sched::yield_now();
        }
        stop.store(true, SeqCst);
    });
    third.join().unwrap();
    pair.into_iter().for_each(|g| g.join().unwrap());
    assert!(rounds.load(SeqCst) > 20);
}

/// As in Go: the one who is woken is next, before those who were ready already.
fn a_woken_receiver_runs_next() {
    let (log, order) = unbounded();
    let (s, r) = bounded(0);
    let receiver = go({
        let log = log.clone();
        move || {
            let n: u8 = r.recv().unwrap();
            log.send(n).unwrap();
        }
    });
    gosched_sched::yield_now();
    let others: Vec<_> = (10..13)
        .map(|n| {
            let log = log.clone();
            go(move || log.send(n).unwrap())
        })
        .collect();
    s.send(1).unwrap();
    gosched_sched::yield_now();
    assert_eq!(order.recv(), Ok(1));
    receiver.join().unwrap();
    others.into_iter().for_each(|g| g.join().unwrap());
    assert_eq!(order.try_iter().count(), 3);
}

/// Also when some of them select: FIFO among waiters.
fn the_longest_waiter_comes_first() {
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
            gosched_sched::yield_now();
            receiver
        })
        .collect();
    (0..10).for_each(|n| s.send(n).unwrap());
    let received = receivers.into_iter().map(|g| g.join().unwrap());
    assert!(received.eq((0..10).map(Ok)));

    let senders: Vec<_> = (0..10)
        .map(|n| {
            let s = s.clone();
            let sender = go(move || s.send(n));
            gosched_sched::yield_now();
            sender
        })
        .collect();
    assert!(r.iter().take(10).eq(0..10));
    senders.into_iter().for_each(|g| assert_eq!(g.join().unwrap(), Ok(())));
}

/// There and back are two messages; no more than a switch for each, and few by way of the
/// scheduler.
fn a_message_costs_one_switch() {
    const ROUNDS: usize = 10_000;
    let (s, there) = bounded(0);
    let (back, r) = bounded(0);
    let other = go(move || echo(there, back));
    let before = counters();
    for n in 0..ROUNDS {
        s.send(n).unwrap();
        assert_eq!(r.recv(), Ok(n));
    }
    let after = counters();
    drop(s);
    other.join().unwrap();
    let direct = after.direct_switches - before.direct_switches;
    let through_scheduler = after.scheduled - before.scheduled;
    let all = direct + through_scheduler;
    assert!(all <= 2 * ROUNDS as u64 + 100, "{direct} direct, {through_scheduler} others");
    assert!(through_scheduler <= all / 30, "{direct} direct, {through_scheduler} others");
}
