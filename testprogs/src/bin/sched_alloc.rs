//! A load under an allocator that ends the process if it is called inside the runtime.
//!
//! Outside the runtime a goroutine may be stopped while it holds the allocator's lock, so code
//! inside must never wait for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use gosched::__private::is_in_runtime;
use gosched::thread::{self, Builder};
use gosched::time::after_func;
use gosched::{go, run, runtime, trace};

struct Strict;

/// What small tasks are allocated with, see `blocks` in gosched-sched.
const BLOCK: Layout = match Layout::from_size_align(56, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("sixteen is a power of two"),
};
static MADE: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Strict = Strict;

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Strict {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check();
        if layout == BLOCK {
            MADE.fetch_add(1, SeqCst);
        }
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        check();
        if layout == BLOCK {
            FREED.fetch_add(1, SeqCst);
        }
        // SAFETY: by the caller.
        unsafe { System.dealloc(start, layout) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check();
        // SAFETY: by the caller.
        unsafe { System.realloc(start, layout, size) }
    }
}

fn check() {
    if is_in_runtime() {
        let text = b"allocator called inside the runtime\n";
        // SAFETY: writes a text.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        std::process::abort();
    }
}

pub(crate) fn main() {
    run(|| {
        // On a busy machine it may take more than that until somebody has stolen.
        let begun = Instant::now();
        let mut rounds = 0..;
        rounds.by_ref().take(20).for_each(round);
        while !is_enough() && begun.elapsed() < Duration::from_secs(200) {
            rounds.next().into_iter().for_each(round);
        }
        waves();
    });
    let counted = runtime::counters();
    println!("steals={}", counted.steals);
    println!("timers={}", counted.timers);
    println!("overflows={}", counted.overflows);
    println!("runs_in_place={}", counted.runs_in_place);
}

fn is_enough() -> bool {
    let counted = runtime::counters();
    let least = counted.timers.min(counted.overflows).min(counted.runs_in_place);
    least > 0 && (runtime::gomaxprocs(0) == 1 || counted.steals > 0)
}

/// Small tasks use the memory of those before them, until a collection frees it.
fn waves() {
    let (waves, tasks) = (40, 1000);
    let made = MADE.load(SeqCst);
    for _ in 0..waves {
        let wave: Vec<_> = (0..tasks).map(|_| go(|| ())).collect();
        wave.into_iter().for_each(|task| task.join().expect("it does not panic"));
    }
    println!("small_tasks={}", waves * tasks);
    println!("blocks_made={}", MADE.load(SeqCst) - made);
    runtime::gc();
    println!("blocks_left={}", MADE.load(SeqCst) - FREED.load(SeqCst));
}

/// A bit of everything, every other time with a trace of it.
fn round(round: usize) {
    let is_traced = round % 2 == 1;
    if is_traced {
        trace::start(std::io::sink()).expect("no other trace is on");
    }
    let task = trace::Task::new("round");
    let _region = task.region("all of it");
    trace::log("round", "begins");
    let plain = std::thread::spawn(|| {
        let goroutines: Vec<_> = (0..50).map(|_| go(thread::park)).collect();
        goroutines.iter().for_each(|goroutine| goroutine.thread().unpark());
        goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("it does not panic"));
    });
    let sum = AtomicUsize::new(0);
    thread::scope(|scope| {
        for i in 0..400 {
            scope.spawn(|| {
                (0..1000).for_each(|_| std::hint::spin_loop());
                sum.fetch_add(1, SeqCst);
            });
            if i % 8 == 0 {
                scope.spawn(|| thread::sleep(Duration::from_micros(100)));
                scope.spawn(|| thread::park_timeout(Duration::from_micros(100)));
            }
        }
        thread::yield_now();
        runtime::gosched();
    });
    assert_eq!(sum.load(SeqCst), 400);
    let detached: Vec<_> = (0..400).map(|i| go(move || vec![i; 10])).collect();
    detached.into_iter().enumerate().filter(|(i, _)| i % 2 == 0).for_each(|(_, handle)| {
        handle.join().expect("it does not panic");
    });
    let named = Builder::new().name(format!("round {round}")).spawn(|| gosched::blocking(|| 7));
    assert_eq!(named.expect("a goroutine").join().expect("it does not panic"), 7);
    go(|| {
        runtime::lock_os_thread();
        thread::yield_now();
    })
    .join()
    .expect("it does not panic");
    alarms();
    let mut text = String::new();
    runtime::dump(&mut text).expect("a String takes everything");
    let procs = runtime::gomaxprocs(1 + round % 4);
    thread::sleep(Duration::from_micros(200));
    runtime::gomaxprocs(procs);
    plain.join().expect("it does not panic");
    runtime::gc();
    if is_traced {
        trace::stop().expect("a sink takes everything");
    }
}

/// Alarms fire inside the runtime, or are stopped there.
fn alarms() {
    let fired = Arc::new(AtomicUsize::new(0));
    let alarms: Vec<_> = (0..40)
        .map(|i| {
            let fired = Arc::clone(&fired);
            after_func(Duration::from_micros(50 + i % 4), move || {
                fired.fetch_add(1, SeqCst);
            })
        })
        .collect();
    let stopped = alarms.iter().step_by(3).filter(|alarm| alarm.stop()).count();
    while fired.load(SeqCst) < alarms.len() - stopped {
        thread::sleep(Duration::from_micros(50));
    }
}
