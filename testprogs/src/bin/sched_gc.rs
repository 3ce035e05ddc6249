//! A peak of goroutines with deep stacks, then a collection. Prints what the process holds in KiB.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{env, fs};

use gosched::{go, run, runtime, thread};

const GOROUTINES: usize = 3_000;
const DEEP: usize = 64 << 10;
/// Goroutines that sleep in the kernel at once, each on a thread of its own.
const BLOCKED: usize = 60;

fn main() {
    // The runtime's own first use.
    go(|| ()).join().expect("it does not panic");
    println!("before={}", resident());
    peak();
    println!("peak={}", PEAK.load(SeqCst));
    println!("after={}", resident());
    many_threads();
    println!("threads_after={}", threads());
    if env::args().nth(1).as_deref() == Some("plain") {
        runtime::gc();
    } else {
        run(runtime::gc);
    }
    println!("collected={}", resident());
    // Threads end on their own account, when they have a CPU.
    let begun = Instant::now();
    while threads() > 30 && begun.elapsed() < Duration::from_secs(200) {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("threads_collected={}", threads());
    println!("collections={}", runtime::counters().collections);
    println!("stops={}", runtime::world_stops().count);
    // It goes on as before.
    let again: Vec<_> = (0..1_000).map(|i| go(move || deep() + i)).collect();
    let sum: usize = again.into_iter().map(|one| one.join().expect("it does not panic")).sum();
    println!("sum={sum}");
}

static PEAK: AtomicUsize = AtomicUsize::new(0);

fn peak() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let goroutines: Vec<_> = (0..GOROUTINES)
        .map(|_| {
            let arrived = arrived.clone();
            go(move || {
                deep();
                arrived.fetch_add(1, SeqCst);
                thread::park();
            })
        })
        .collect();
    while arrived.load(SeqCst) < GOROUTINES {
        std::thread::sleep(Duration::from_millis(1));
    }
    PEAK.store(resident(), SeqCst);
    goroutines.iter().for_each(|goroutine| goroutine.thread().unpark());
    goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("it does not panic"));
    // A joiner is woken shortly before its goroutine is counted as ended.
    while runtime::num_goroutine() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn many_threads() {
    let barrier = Arc::new(Barrier::new(BLOCKED));
    let blocked: Vec<_> = (0..BLOCKED)
        .map(|_| {
            let barrier = barrier.clone();
            go(move || gosched::blocking(|| barrier.wait().is_leader()))
        })
        .collect();
    let leaders = blocked.into_iter().map(|one| one.join().expect("it does not panic"));
    assert_eq!(leaders.filter(|leads| *leads).count(), 1);
}

/// Touches that much stack; 0.
#[inline(never)]
fn deep() -> usize {
    let block = black_box([0_u8; DEEP]);
    black_box(block.iter().map(|byte| usize::from(*byte)).sum())
}

fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("readable");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("a field");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("readable").count()
}
