//! A little of everything, each with a result that is known beforehand.

use gosched::channel::{self, Receiver, Sender, bounded};
use gosched::net::{TcpListener, TcpStream, UnixStream};
use gosched::sync::{Mutex, WaitGroup};
use gosched::thread::JoinHandle;
use gosched::{blocking, go, run, runtime, thread};
use std::cell::Cell;
use std::fmt::Display;
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_micros(300);

/// What to leave out, since it can't be had.
#[derive(Clone, Copy)]
pub(crate) struct Doses {
    /// Descriptors can be opened.
    pub(crate) files: bool,
}

impl Doses {
    pub(crate) const ALL: Doses = Doses { files: true };
}

pub(crate) fn print(key: &str, value: impl Display) {
    println!("{key}={value}");
}

/// Does everything, and says what the runtime had to do for it.
pub(crate) fn all(doses: &Doses) {
    let before = (runtime::preemptions(), runtime::counters());
    let ended = quietly(doses);
    let (stopped, counters) = (runtime::preemptions(), runtime::counters());
    print("ended", ended);
    print("in_place", stopped.in_place - before.0.in_place);
    print("undeclared", counters.undeclared_hand_offs - before.1.undeclared_hand_offs);
    print("machines", counters.machines);
}

/// Does everything; returns how many goroutines have ended as they should.
pub(crate) fn quietly(doses: &Doses) -> usize {
    let doses = *doses;
    run(move || {
        let mut all: Vec<JoinHandle<()>> = Vec::new();
        all.extend(ring(30, 30));
        all.extend((0..12).map(|_| go(locals)));
        all.extend((0..12).map(sleeper));
        all.extend(lockers(20));
        all.extend((0..6).map(|_| go(times)));
        all.extend((0..3).map(|_| go(compute)));
        if doses.files {
            all.push(go(streams));
            all.push(go(connections));
        }
        let count = all.len();
        all.into_iter().for_each(|g| g.join().expect("no panic"));
        count
    })
}

/// A token goes round.
fn ring(count: u64, rounds: u64) -> Vec<JoinHandle<()>> {
    let (first, mut from) = bounded::<u64>(0);
    let mut all = Vec::new();
    for _ in 1..count {
        let (to, next) = bounded(0);
        all.push(go({
            let from = from.clone();
            move || pass(&from, &to)
        }));
        from = next;
    }
    all.push(go(move || {
        first.send(0).expect("the next one lives");
        for round in 1..=rounds {
            let token = from.recv().expect("it comes back");
            assert_eq!(token, round * (count - 1));
            if round < rounds {
                first.send(token).expect("the next one lives");
            }
        }
        drop(first);
        assert!(from.recv().is_err(), "all have gone");
    }));
    all
}

fn pass(from: &Receiver<u64>, to: &Sender<u64>) {
    for token in from {
        to.send(token + 1).expect("the next one lives");
    }
}

/// A thread-local is the goroutine's own, whatever the others do.
fn locals() {
    thread_local!(static MINE: Cell<u64> = const { Cell::new(0) });
    assert_eq!(MINE.get(), 0, "a fresh one");
    for round in 1..=20 {
        MINE.set(MINE.get() + round);
        thread::yield_now();
        if round % 8 == 0 {
            thread::sleep(SHORT);
        }
    }
    assert_eq!(MINE.get(), 210);
}

/// Sleeps in the kernel, declared or not.
fn sleeper(i: usize) -> JoinHandle<()> {
    go(move || {
        for _ in 0..4 {
            let begin = Instant::now();
            let sleep = || std::thread::sleep(SHORT);
            if i.is_multiple_of(2) {
                blocking(sleep)
            } else {
                sleep()
            }
            assert!(begin.elapsed() >= SHORT, "it ended early");
        }
    })
}

/// Count under a lock of ours and one of std's, which is kept across a yield.
fn lockers(count: u64) -> Vec<JoinHandle<()>> {
    const EACH: u64 = 15;
    let sums = Arc::new((Mutex::new(0_u64), std::sync::Mutex::new(0_u64)));
    let group = WaitGroup::new();
    group.add(count as usize);
    let mut all: Vec<_> = (0..count)
        .map(|_| {
            let (sums, group) = (sums.clone(), group.clone());
            go(move || {
                for _ in 0..EACH {
                    let mut ours = sums.0.lock().expect("no panic");
                    *ours += 1;
                    drop(ours);
                    let mut stds = sums.1.lock().expect("no panic");
                    let before = *stds;
                    thread::yield_now();
                    *stds = before + 1;
                }
                group.done();
            })
        })
        .collect();
    all.push(go(move || {
        group.wait();
        assert_eq!(*sums.0.lock().expect("no panic"), count * EACH);
        assert_eq!(*sums.1.lock().expect("no panic"), count * EACH);
    }));
    all
}

/// Sleeps, and waits that time out.
fn times() {
    let (_open, never) = bounded::<()>(0);
    for _ in 0..5 {
        let begin = Instant::now();
        thread::sleep(SHORT);
        assert!(begin.elapsed() >= SHORT, "it ended early");
        let after = channel::after(SHORT);
        gosched::select! {
            recv(never) -> _ => panic!("nobody sends"),
            recv(after) -> at => assert!(at.is_ok()),
        }
        assert!(begin.elapsed() >= 2 * SHORT, "it ended early");
    }
}

/// Computes for longer than a slice or two.
fn compute() {
    let begin = Instant::now();
    let mut sum = 0_u64;
    for i in 0..20_000_000 / if cfg!(debug_assertions) { 20 } else { 1 } {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
    }
    black_box((sum, begin));
}

fn streams() {
    let (mut near, mut far) = UnixStream::pair().expect("a pair");
    let echo = go(move || {
        let mut byte = [0];
        while far.read(&mut byte).expect("it can be read") > 0 {
            far.write_all(&byte).expect("it can be written");
        }
    });
    for byte in 0..40 {
        near.write_all(&[byte]).expect("it can be written");
        let mut back = [0];
        near.read_exact(&mut back).expect("it comes back");
        assert_eq!(back, [byte]);
    }
    drop(near);
    echo.join().expect("no panic");
}

fn connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("known");
    let server = go(move || {
        for _ in 0..5 {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("it can be read");
            assert_eq!(text, "hello");
        }
    });
    for _ in 0..5 {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"hello").expect("it can be written");
    }
    server.join().expect("no panic");
}
