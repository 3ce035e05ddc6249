//! Goroutines that could pass others for ever on a processor, and one that must have its turn all
//! the same: `sched_starve KIND`. Hangs if it has not.

use std::env;
use std::io::{Read, Write};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use gosched::channel::bounded;
use gosched::net::UnixStream;
use gosched::thread::{self, Builder};
use gosched::{go, run, runtime};

static STOP: AtomicBool = AtomicBool::new(false);
/// How often somebody could have passed the one that waits.
static PASSES: AtomicU64 = AtomicU64::new(0);

fn main() {
    let kind = env::args().nth(1).unwrap_or_default();
    run(move || match kind.as_str() {
        "stack" => behind_time_outs(has_no_stack),
        "locked" => behind_time_outs(is_locked),
        "urgent" => behind_an_urgent_one(),
        "busy" => behind_one_that_never_waits(),
        "next" => behind_a_pair_and_the_global_queue(),
        "network" => behind_the_network(),
        "lookout" => beside_a_lookout(),
        other => panic!("no kind {other}"),
    });
    println!("passes={}", PASSES.load(Relaxed));
}

/// Runs `f` in goroutines of its own until told to stop.
fn endless(count: usize, f: impl Fn() + Copy + Send + 'static) -> Vec<thread::JoinHandle<()>> {
    let one = move || {
        while !STOP.load(Acquire) {
            PASSES.fetch_add(1, Relaxed);
            f();
        }
    };
    (0..count).map(|_| go(one)).collect()
}

fn stop(endless: Vec<thread::JoinHandle<()>>) {
    STOP.store(true, Release);
    endless.into_iter().for_each(|one| one.join().expect("it does not panic"));
}

/// Gives way, in the ring, until there were so many passes.
fn give_way_until(passes: u64) {
    while PASSES.load(Relaxed) < passes {
        thread::yield_now();
    }
}

/// Time-outs that are due as soon as they are armed.
fn behind_time_outs(waits: fn()) {
    let others = endless(2, || thread::park_timeout(Duration::ZERO));
    give_way_until(10);
    waits();
    stop(others);
}

/// One whose first run needs a stack that is made for it: each turn of it begins on the scheduler's
/// stack, where timers are looked at first.
fn has_no_stack() {
    let fresh = Builder::new().stack_size(1 << 20).spawn(|| ()).expect("a goroutine");
    // Takes the next slot, so that the fresh one is in the ring.
    let displaces = go(|| ());
    fresh.join().expect("it does not panic");
    displaces.join().expect("it does not panic");
}

/// One that runs on a thread of its own: the same.
fn is_locked() {
    let locked = go(|| {
        runtime::lock_os_thread();
        (0..20).for_each(|_| thread::yield_now());
    });
    locked.join().expect("it does not panic");
}

/// One that does nothing but operations, is interrupted for one that is woken all the time, and
/// goes on first each time. (With its slice renewed each time, if nobody counts.)
fn behind_an_urgent_one() {
    let busy = busy();
    let woken = endless(1, || thread::sleep(Duration::from_micros(100)));
    give_way_until(10);
    (0..20).for_each(|_| thread::yield_now());
    stop(woken);
    busy.join().expect("it does not panic");
}

/// One that does nothing but operations, and nobody else is about.
fn behind_one_that_never_waits() {
    let busy = busy();
    give_way_until(1);
    (0..5).for_each(|_| thread::yield_now());
    PASSES.fetch_add(OPERATIONS.load(Relaxed), Relaxed);
    stop(vec![busy]);
}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);

fn busy() -> thread::JoinHandle<()> {
    go(|| {
        PASSES.fetch_add(1, Relaxed);
        let (sender, receiver) = bounded(1);
        while !STOP.load(Acquire) {
            OPERATIONS.fetch_add(1, Relaxed);
            sender.send(()).expect("it is received");
            receiver.recv().expect("it was sent");
        }
    })
}

/// Two that wake each other keep the next slot filled, and one keeps the global queue filled.
fn behind_a_pair_and_the_global_queue() {
    let first = go(|| {
        let second_is = loop {
            match SECOND.get() {
                Some(second) => break second,
                None => thread::yield_now(),
            }
        };
        wake_each_other(second_is);
    });
    let woken_by = first.thread();
    let second = go(move || wake_each_other(&woken_by));
    SECOND.set(second.thread()).expect("set once");
    let global = endless(1, runtime::gosched);
    give_way_until(200);
    // Three that give way in the ring.
    (0..3).for_each(|_| {
        go(|| (0..20).for_each(|_| thread::yield_now())).join().expect("it does not panic");
    });
    stop(global);
    first.thread().unpark();
    second.thread().unpark();
    first.join().expect("it does not panic");
    second.thread().unpark();
    second.join().expect("it does not panic");
}

/// On two processors: two that send each other bytes, so that there is always something to poll, and
/// one in the ring of a goroutine that computes. Passes count from when it was there.
fn behind_the_network() {
    let (a, b) = UnixStream::pair().expect("two sockets");
    let others = [(a, true), (b, false)].map(|(end, begins)| go(move || send_back(end, begins)));
    let waits = go(|| {
        park_until_asked();
        WAS_RUN.store(PASSES.load(Relaxed) + 1, Release);
    });
    let displaces = go(park_until_asked);
    give_way_until(1000);
    IS_ASKED.store(true, Release);
    waits.thread().unpark();
    // Takes the next slot, so that the other one is in the ring.
    displaces.thread().unpark();
    let begun = PASSES.load(Relaxed);
    while WAS_RUN.load(Acquire) == 0 && PASSES.load(Relaxed) < begun + 200_000 {
        std::hint::spin_loop();
    }
    let passes = WAS_RUN.load(Acquire).checked_sub(1).expect("it has its turn");
    STOP.store(true, Release);
    others.into_iter().chain([waits, displaces]).for_each(|g| g.join().expect("it does not panic"));
    PASSES.store(passes.saturating_sub(begun), Relaxed);
}

/// Whether the two that wait may go on.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

fn park_until_asked() {
    while !IS_ASKED.load(Acquire) {
        thread::park();
    }
}

/// How many passes there were when it ran, and one; 0: it has not.
static WAS_RUN: AtomicU64 = AtomicU64::new(0);

/// Sends a byte for each that comes, until told to stop, or the other one has stopped.
fn send_back(mut end: UnixStream, begins: bool) {
    let mut byte = [0];
    if begins {
        end.write_all(&byte).expect("there is room");
    }
    while !STOP.load(Acquire) {
        if end.read_exact(&mut byte).and_then(|()| end.write_all(&byte)).is_err() {
            return;
        }
        PASSES.fetch_add(1, Relaxed);
    }
}

static SECOND: std::sync::OnceLock<thread::Thread> = std::sync::OnceLock::new();

fn wake_each_other(other: &thread::Thread) {
    while !STOP.load(Acquire) {
        PASSES.fetch_add(1, Relaxed);
        other.unpark();
        thread::park();
    }
}

/// Two that wake each other, until an idle machine gives up to take one of them and keeps a lookout;
/// then one of them wakes the other and goes on without a word. That one is alone in a next slot, and
/// nobody was woken for it.
fn beside_a_lookout() {
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    let (ball, balls) = bounded(0);
    let (answer, answers) = bounded(0);
    let other = go(move || {
        for must_answer in balls {
            HAS_RUN.store(true, Release);
            if must_answer {
                answer.send(()).expect("it is waited for");
            }
        }
    });
    // With a timer the machine in the poller sleeps that long: it looks for a deadlock otherwise, every
    // 10 ms, and takes what it finds.
    go(|| thread::sleep(Duration::from_secs(3600)));
    let lookouts = || runtime::counters().lookouts;
    for _ in 0..200 {
        let before = lookouts();
        for _ in 0..10_000 {
            ball.send(true).expect("it is waited for");
            answers.recv().expect("it is answered");
            if lookouts() > before {
                PASSES.fetch_add(1, Relaxed);
                break;
            }
        }
        HAS_RUN.store(false, Relaxed);
        ball.send(false).expect("it is waited for");
        while !HAS_RUN.load(Acquire) {
            std::hint::spin_loop();
        }
    }
    drop(ball);
    other.join().expect("it does not panic");
}
