//! Measures channels: `GOMAXPROCS=1 cargo run -p gosched-channel --release --example channel_costs`.
//!
//! Prints nanoseconds a message, the best of several rounds, so that a busy machine disturbs
//! little.

use gosched_channel::{bounded, never, select, unbounded};
use gosched_sched::{JoinHandle, SpawnOptions, run, spawn};
use std::io::{self, Write};
use std::panic::Location;
use std::time::Instant;

const MESSAGES: usize = 200_000;
const ROUNDS: usize = 7;

fn main() -> io::Result<()> {
    let rows: [(&str, fn()); 9] = [
        ("buffered, send + recv by one goroutine", by_one_bounded),
        ("unbounded, send + recv by one goroutine", by_one_unbounded),
        ("buffered (100), one to one", || one_to_one(100)),
        ("buffered (1), one to one", || one_to_one(1)),
        ("rendezvous, one to one", || one_to_one(0)),
        ("rendezvous, there and back", there_and_back),
        ("send + select of two, one is ready", select_ready),
        ("select of two, fed through a buffer (1)", || select_fed(1)),
        ("select of two, fed without a buffer", || select_fed(0)),
    ];
    for (name, row) in rows {
        let best = (0..ROUNDS).map(|_| time(row)).min().unwrap_or(0);
        writeln!(io::stdout(), "{name:40} {:4} ns", best / MESSAGES as u128)?;
    }
    Ok(())
}

fn time(row: fn()) -> u128 {
    run(move || {
        let start = Instant::now();
        row();
        start.elapsed().as_nanos()
    })
}

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

fn by_one_bounded() {
    let (s, r) = bounded(16);
    for n in 0..MESSAGES {
        s.send(n).unwrap();
        assert_eq!(r.recv(), Ok(n));
    }
}

fn by_one_unbounded() {
    let (s, r) = unbounded();
    for n in 0..MESSAGES {
        s.send(n).unwrap();
        assert_eq!(r.recv(), Ok(n));
    }
}

fn one_to_one(capacity: usize) {
    let (s, r) = bounded(capacity);
    let sender = go(move || (0..MESSAGES).for_each(|n| s.send(n).unwrap()));
    assert_eq!(r.iter().count(), MESSAGES);
    sender.join().unwrap();
}

fn there_and_back() {
    let (s, there) = bounded(0);
    let (back, r) = bounded(0);
    let echo = go(move || there.iter().for_each(|n: usize| back.send(n).unwrap()));
    for n in 0..MESSAGES {
        s.send(n).unwrap();
        assert_eq!(r.recv(), Ok(n));
    }
    drop(s);
    echo.join().unwrap();
}

fn select_ready() {
    let (s, r) = bounded(16);
    let (_s2, r2) = bounded::<usize>(16);
    for n in 0..MESSAGES {
        s.send(n).unwrap();
        select! {
            recv(r) -> message => assert_eq!(message, Ok(n)),
            recv(r2) -> _ => unreachable!(),
        }
    }
}

fn select_fed(capacity: usize) {
    let (s, r) = bounded(capacity);
    let (_s2, r2) = bounded::<usize>(capacity);
    let never = never::<usize>();
    let sender = go(move || (0..MESSAGES).for_each(|n| s.send(n).unwrap()));
    loop {
        select! {
            recv(r) -> message => if message.is_err() { break },
            recv(r2) -> _ => unreachable!(),
            recv(never) -> _ => unreachable!(),
        }
    }
    sender.join().unwrap();
}
