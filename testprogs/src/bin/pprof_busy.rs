//! Computes, waits and contends in functions of known names, and writes every profile into a folder, and
//! a trace of it.

use gosched::channel::bounded;
use gosched::pprof::{self, Profile};
use gosched::sync::{Arc, Mutex};
use gosched::{go, runtime, thread, trace};
use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[gosched::main]
fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let cpu_ms: u64 = std::env::args().nth(2).map_or(600, |ms| ms.parse().expect("a number"));
    pprof::set_block_profile_rate(1);
    pprof::set_mutex_profile_fraction(1);
    trace::start(File::create(folder.join("trace")).expect("a file")).expect("no other is on");
    pprof::start_cpu_profile(File::create(folder.join("cpu")).expect("a file")).expect("it starts");
    let stopped = runtime::preemptions().in_place;
    compute(cpu_ms);
    let stopped = runtime::preemptions().in_place - stopped;
    wait_for_a_message();
    contend();
    pprof::stop_cpu_profile().expect("it is written");
    trace::stop().expect("it is written");
    write_all(&folder);
    println!("preemptions={stopped}");
}

/// Two goroutines that compute until so much CPU time has passed, one of them with labels.
fn compute(cpu_ms: u64) {
    let end = cpu_time() + Duration::from_millis(cpu_ms);
    let labelled = pprof::with_labels(&[("work", "labelled")], || go(move || hot_function(end)));
    let other = go(move || hot_function(end));
    labelled.join().expect("it returns");
    other.join().expect("it returns");
}

#[inline(never)]
fn hot_function(end: Duration) {
    let mut x = 1_u64;
    while cpu_time() < end {
        for _ in 0..100_000 {
            x = black_box(x).wrapping_mul(6_364_136_223_846_793_005).rotate_left(7);
        }
    }
    black_box(x);
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[inline(never)]
fn wait_for_a_message() {
    let (tx, rx) = bounded(0);
    go(move || {
        thread::sleep(Duration::from_millis(50));
        tx.send(()).expect("it is received");
    });
    rx.recv().expect("it is sent");
    // Otherwise the call would be a jump.
    black_box(&rx);
}

/// Holds a lock while others wait, until one has.
fn contend() {
    let lock = Arc::new(Mutex::new(0));
    while pprof::Profile::Mutex.count() == 0 {
        let holders: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                go(move || hold_the_lock(&lock))
            })
            .collect();
        holders.into_iter().for_each(|holder| holder.join().expect("it returns"));
    }
}

#[inline(never)]
fn hold_the_lock(lock: &Mutex<u64>) {
    let mut guard = lock.lock().expect("nobody panics");
    thread::sleep(Duration::from_millis(5));
    *guard += 1;
    drop(guard);
    black_box(lock);
}

fn write_all(folder: &Path) {
    let parked = pprof::with_labels(&[("work", "none")], || go(park_here));
    let (tx, rx) = bounded::<()>(0);
    let receives = go(move || rx.recv().is_err());
    // Until both wait.
    loop {
        let mut text = String::new();
        runtime::dump(&mut text).expect("a String takes everything");
        if text.contains("[park]") && text.contains("[chan receive]") {
            break;
        }
        thread::yield_now();
    }
    for profile in Profile::ALL {
        for (debug, end) in ["", ".1", ".2"].into_iter().enumerate() {
            let file = folder.join(format!("{}{end}", profile.name()));
            let mut file = File::create(file).expect("a file");
            profile.write_to(&mut file, debug as u32).expect("it is written");
        }
    }
    parked.thread().unpark();
    parked.join().expect("it returns");
    drop(tx);
    assert!(receives.join().expect("it returns"));
}

#[inline(never)]
fn park_here() {
    thread::park();
    black_box(());
}
