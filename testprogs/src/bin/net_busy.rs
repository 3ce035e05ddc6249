//! The network beside goroutines that compute without end: `net_busy WHAT COUNT`.
//!
//! * `hogs`: every processor has a goroutine that never enters the runtime; a plain thread talks to
//!   an echo all the same, until there were so many round trips in which few goroutines had a turn.
//!   It goes on for ever where answers come only when machines poll in their 61st round.
//! * `alone`: the only goroutine that a socket wakes computes until another one has run, which a
//!   plain thread starts meanwhile, beside an idle processor; so many times.
//! * `moves`: goroutines move the deadlines of reads that wait, which wakes these, until they were
//!   asked so many times to make room when they were done.
//! * `yields`: goroutines that yield without end keep every queue filled; a plain thread talks to an
//!   echo, so many round trips.
//!
//! Prints what was done, and how often somebody has polled in passing.

use gosched::net::TcpListener;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use std::{env, thread};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let count = arguments[1].parse().unwrap();
    let what = arguments[0].clone();
    let is_over = Arc::new(AtomicBool::new(false));
    let done = match what.as_str() {
        "alone" => alone(count),
        "moves" => gosched::run(move || moves(count)),
        other => {
            let mut stream = TcpStream::connect(start_echo()).unwrap();
            stream.set_nodelay(true).unwrap();
            // The echo waits for the network from now on.
            talk(&mut stream, 1);
            until_it_waits();
            let yields = match other {
                "hogs" => false,
                "yields" => true,
                _ => panic!("what is {other}?"),
            };
            let procs = gosched::runtime::gomaxprocs(0);
            let started = Arc::new(AtomicUsize::new(0));
            for _ in 0..2 * procs {
                let (is_over, started) = (is_over.clone(), started.clone());
                gosched::go(move || {
                    started.fetch_add(1, SeqCst);
                    while !is_over.load(SeqCst) {
                        if yields {
                            gosched::thread::yield_now();
                        }
                    }
                });
            }
            // Hogs run one a processor.
            while started.load(SeqCst) < procs {
                thread::yield_now();
            }
            if yields { talk(&mut stream, count) } else { talk_until_soon(&mut stream, count) }
        }
    };
    is_over.store(true, SeqCst);
    println!("done={done}");
    println!("polls={}", gosched::runtime::counters().polls);
}

fn start_echo() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    gosched::go(move || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() > 0 {
            stream.write_all(&byte).unwrap();
        }
    });
    told.recv().unwrap()
}

fn rounds() -> u64 {
    let counters = gosched::runtime::counters();
    counters.scheduled + counters.direct_switches
}

fn until_it_waits() {
    let mut dump = String::new();
    while !dump.contains("[IO wait") {
        dump.clear();
        gosched::runtime::dump(&mut dump).unwrap();
        thread::yield_now();
    }
}

fn talk(stream: &mut TcpStream, count: usize) -> usize {
    for i in 0..count {
        stream.write_all(&[i as u8]).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(byte[0], i as u8);
    }
    count
}

/// Talks until so many answers came soon; how often it had to.
fn talk_until_soon(stream: &mut TcpStream, count: usize) -> usize {
    /// How often a goroutine is switched to in a trip, at most: where machines alone look, it is
    /// three times as much, unless this thread has no CPU for long.
    const ROUNDS_MAX: u64 = 20;
    let (mut trips, mut soon) = (0, 0);
    while soon < count {
        let before = rounds();
        trips += talk(stream, 1);
        soon += usize::from(rounds() - before <= ROUNDS_MAX);
    }
    println!("soon={soon}");
    trips
}

fn moves(count: usize) -> usize {
    let asked = || gosched::runtime::counters().asked_yields as usize;
    let (before, is_over) = (asked(), Arc::new(AtomicBool::new(false)));
    let pairs = [(); 4].map(|()| {
        let (waits, _partner) = gosched::net::UnixStream::pair().unwrap();
        let waits = Arc::new(waits);
        let reader = gosched::go({
            let (waits, is_over) = (waits.clone(), is_over.clone());
            move || {
                while !is_over.load(SeqCst) {
                    let error = (&*waits).read(&mut [0]).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                    waits.set_read_deadline(None);
                }
            }
        });
        let mover = gosched::go({
            let is_over = is_over.clone();
            move || {
                while !is_over.load(SeqCst) || !reader.is_finished() {
                    waits.set_read_deadline(Some(Instant::now()));
                }
            }
        });
        (mover, _partner)
    });
    while asked() - before < count {
        gosched::thread::yield_now();
    }
    is_over.store(true, SeqCst);
    pairs.into_iter().for_each(|(mover, _partner)| mover.join().unwrap());
    asked() - before
}

fn alone(count: usize) -> usize {
    let (tell, told) = std::sync::mpsc::channel();
    let turns = Arc::new(AtomicUsize::new(0));
    let woken = Arc::new(AtomicUsize::new(0));
    let server = gosched::go({
        let (turns, woken) = (turns.clone(), woken.clone());
        move || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            for i in 1..=count {
                stream.read_exact(&mut [0]).unwrap();
                woken.store(i, SeqCst);
                while turns.load(SeqCst) < i {
                    std::hint::spin_loop();
                }
            }
        }
    });
    let mut stream = TcpStream::connect(told.recv().unwrap()).unwrap();
    for i in 1..=count {
        stream.write_all(b"x").unwrap();
        while woken.load(SeqCst) < i {
            thread::yield_now();
        }
        let turns = turns.clone();
        gosched::go(move || turns.fetch_add(1, SeqCst));
    }
    server.join().unwrap();
    turns.load(SeqCst)
}
