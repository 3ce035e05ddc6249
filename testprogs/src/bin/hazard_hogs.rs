//! Goroutines that only compute, for several slices each, on two processors. The first argument is
//! how many. They go on until each was stopped some times, and most have moved; the process is killed
//! if that never comes. With `alloc` as the second, on one processor, they allocate all the time, and
//! go on until each has had some turns and some stops had to be tried again. Prints `key=value` lines.

use gosched::{go, run, runtime};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use testprogs::signals::thread_id;

/// Who computed last on each thread, by the thread's number.
static LAST: [AtomicU32; 4096] = [const { AtomicU32::new(0) }; 4096];

/// What a goroutine saw of its turns.
struct Seen {
    /// How often it lost the processor.
    stopped: u64,
    threads: Vec<i32>,
}

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    if std::env::args().nth(2).is_some_and(|text| text == "alloc") {
        return take_turns(count);
    }
    gosched::Config::new().procs(2).start().expect("it is the first");
    run(move || {
        let pieces = pieces_of(Duration::from_millis(50));
        UNSTOPPED.store(u64::from(count), Relaxed);
        let hogs: Vec<_> = (1..=count).map(|i| go(move || compute(i, pieces, count))).collect();
        let seen: Vec<_> = hogs.into_iter().map(|hog| hog.join().expect("no panic")).collect();
        let moved = seen.iter().filter(|seen| seen.threads.len() > 1).count();
        println!("stopped_min={}", seen.iter().map(|seen| seen.stopped).min().unwrap_or(0));
        println!("moved_percent={}", 100 * moved / seen.len());
        println!("machines={}", runtime::counters().machines);
        println!("undeclared_hand_offs={}", runtime::counters().undeclared_hand_offs);
        println!("preemptions={}", runtime::preemptions().in_place);
    });
}

/// How often each is to be stopped, and how many percent are to be seen on another thread.
const STOPS_MIN: u64 = 3;
const MOVED_PERCENT_MIN: u64 = 80;

/// Those that were not stopped often enough yet, and those that have moved.
static UNSTOPPED: AtomicU64 = AtomicU64::new(0);
static MOVED: AtomicU64 = AtomicU64::new(0);

fn piece() {
    black_box((0..20_000_u64).fold(1, |x, i| black_box(x ^ (x << 1) ^ i)));
}

/// How many pieces take that much of a CPU's time here.
fn pieces_of(time: Duration) -> u32 {
    let (mut count, start) = (0, cpu_time());
    while cpu_time() - start < time {
        piece();
        count += 1;
    }
    count
}

/// CPU time of the process, which only one goroutine uses yet.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a time of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Between two pieces it has lost its processor if somebody else computed on its thread, or it is
/// on another one.
fn compute(me: u32, pieces: u32, count: u32) -> Seen {
    let mut seen = Seen { stopped: 0, threads: vec![thread_id()] };
    let mut before = seen.threads[0];
    note(me, before);
    let is_enough = || {
        let percent = 100 * MOVED.load(Relaxed) / u64::from(count);
        UNSTOPPED.load(Relaxed) == 0 && percent >= MOVED_PERCENT_MIN
    };
    for _ in (0..).take_while(|n| *n < pieces || !is_enough()) {
        piece();
        let now = thread_id();
        let was_mine = note(me, now);
        if now != before || !was_mine {
            seen.stopped += 1;
            UNSTOPPED.fetch_sub(u64::from(seen.stopped == STOPS_MIN), Relaxed);
        }
        if !seen.threads.contains(&now) {
            seen.threads.push(now);
            MOVED.fetch_add(u64::from(seen.threads.len() == 2), Relaxed);
        }
        before = now;
    }
    seen
}

/// Whether `me` was the last on the thread.
fn note(me: u32, thread: i32) -> bool {
    LAST[thread as usize % LAST.len()].swap(me, Relaxed) == me
}

/// So many turns each has before the end.
const TURNS_MIN: u32 = 6;
/// So many stops have found libc. How many do depends on the machine: from every eighth to three out of
/// four on one and the same.
const TRIED_AGAIN_MIN: u64 = 50;

/// Where libc allocates nobody is stopped, so every other stop has to be tried again.
fn take_turns(count: u32) {
    let config = gosched::Config::new().procs(1).slice(Duration::from_millis(1));
    config.start().expect("it is the first");
    run(move || {
        static LATE: AtomicU32 = AtomicU32::new(0);
        LATE.store(count, Relaxed);
        let hog = |me| {
            let (mut turns, mut blocks, mut n) = (0, Vec::new(), 0);
            let is_enough =
                || LATE.load(Relaxed) == 0 && runtime::preemptions().in_libc >= TRIED_AGAIN_MIN;
            while !is_enough() {
                blocks.push(black_box(vec![n as u8; 1 + n * 37 % 2_000]));
                if blocks.len() > 32 {
                    blocks.swap_remove(n % 32);
                }
                n += 1;
                if n % 64 == 0 && !note(me, thread_id()) {
                    turns += 1;
                    LATE.fetch_sub(u32::from(turns == TURNS_MIN), Relaxed);
                }
            }
            turns
        };
        let hogs: Vec<_> = (1..=count).map(|me| go(move || hog(me))).collect();
        let turns: Vec<_> = hogs.into_iter().map(|hog| hog.join().expect("no panic")).collect();
        println!("turns_min={}", turns.iter().min().unwrap_or(&0));
        println!("turns_max={}", turns.iter().max().unwrap_or(&0));
        println!("preemptions={}", runtime::preemptions().in_place);
        println!("in_libc={}", runtime::preemptions().in_libc);
    });
}
