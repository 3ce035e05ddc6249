//! Two machines on one CPU, of which one is put to rest after a while: `sched_rest`. Then one of two
//! processors rests while on the other one a goroutine computes and others wait, or makes a blocking call
//! while a plain thread wakes another. Hangs if that one never has its turn. With `GOSCHED=rest=0` nobody
//! is to rest, and it ends after half a second.

use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gosched::{__private, blocking, go, run, runtime, thread};

static STOP: AtomicBool = AtomicBool::new(false);
static IS_AWAITED: AtomicBool = AtomicBool::new(false);
static HAS_RUN: AtomicBool = AtomicBool::new(false);

fn main() {
    share_one_cpu();
    let may_rest = !std::env::var("GOSCHED").unwrap_or_default().contains("rest=0");
    run(move || {
        // Enough for both machines, at all times.
        let others: Vec<_> = (0..8).map(|_| go(give_way)).collect();
        if may_rest {
            share_until_one_rests();
            compute_at_rest();
            block_at_rest();
        } else {
            work_for(Duration::from_millis(500));
        }
        STOP.store(true, Release);
        others.into_iter().for_each(|other| other.join().expect("it does not panic"));
    });
    println!("rests={}", runtime::counters().rests);
}

/// This thread and all that it starts have the CPU on which it is, and no other.
fn share_one_cpu() {
    // SAFETY: asks the kernel for a number.
    let here = unsafe { libc::sched_getcpu() };
    // SAFETY: bits.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: sets a bit within the set.
    unsafe { libc::CPU_SET(usize::try_from(here).expect("it runs somewhere"), &mut one) };
    // SAFETY: the kernel reads the set, whose size it is told.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&one), &one) };
    assert_eq!(result, 0);
}

fn give_way() {
    while !STOP.load(Acquire) {
        if IS_AWAITED.load(Acquire) {
            HAS_RUN.store(true, Release);
        }
        thread::yield_now();
    }
}

fn share_until_one_rests() {
    while runtime::counters().rests == 0 {
        thread::yield_now();
    }
}

/// One of two processors rests until somebody ends it.
fn begin_rest() {
    while __private::resting() == 0 {
        __private::put_to_rest(1);
        (0..100).for_each(|_| thread::yield_now());
    }
}

fn compute_at_rest() {
    begin_rest();
    IS_AWAITED.store(true, Release);
    while !HAS_RUN.load(Acquire) {
        spin_loop();
    }
}

/// Whoever is woken is not for the processor at rest, which nobody looks at while there is work.
fn block_at_rest() {
    let (call, calls) = mpsc::channel();
    let woken = go(thread::park);
    let waker = woken.thread().clone();
    let plain = std::thread::spawn(move || {
        calls.recv().expect("a call begins");
        waker.unpark();
    });
    begin_rest();
    blocking(move || {
        call.send(()).expect("it is waited for");
        plain.join().expect("it does not panic");
        // For the monitor to look, several times.
        std::thread::sleep(Duration::from_millis(20));
    });
    woken.join().expect("it does not panic");
}

fn work_for(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        thread::yield_now();
    }
}
