//! A peak of goroutines with deep stacks, then a collection. Prints what the process holds in KiB.
//! `sched_gc goroutine|plain|background|shallow|waiting [HOW_MANY]`: who collects; `shallow` is `plain`
//! after goroutines that use little stack, `waiting` is `plain` while they wait.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{env, fs};

use gosched::sync::Pool;
use gosched::{go, run, runtime, thread};

fn how_many() -> usize {
    env::args().nth(2).map_or(3_000, |n| n.parse().expect("a number"))
}

fn is_asked(kind: &str) -> bool {
    env::args().nth(1).as_deref() == Some(kind)
}

const DEEP: usize = 64 << 10;
/// Goroutines that sleep in the kernel at once, each on a thread of its own.
const BLOCKED: usize = 60;

fn main() {
    // The runtime's own first use.
    go(|| ()).join().expect("it does not panic");
    let before = resident();
    println!("before={before}");
    if is_asked("waiting") {
        return while_they_wait();
    }
    peak();
    println!("peak={}", PEAK.load(SeqCst));
    if is_asked("background") {
        return by_itself(before);
    }
    if is_asked("shallow") {
        runtime::gc();
        println!("collected={}", resident());
        (0..1_000).for_each(|i| assert_eq!(go(move || i).join().expect("it does not panic"), i));
        println!("after_trickle={}", resident());
        peak();
        println!("peak_again={}", PEAK.load(SeqCst));
        return;
    }
    println!("after={}", resident());
    many_threads();
    println!("threads_after={}", threads());
    if is_asked("plain") {
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

/// Nobody asks for a collection: some seconds later the memory is gone, and does not come back.
fn by_itself(before: usize) {
    let begin = Instant::now();
    while resident() > before + 40_000 || runtime::counters().background_collections == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("fallen={}", resident());
    println!("after {} ms", begin.elapsed().as_millis());
    for i in 0..20_000 {
        assert_eq!(go(move || deep() + i).join().expect("it does not panic"), i);
    }
    println!("after_trickle={}", resident());
    let stats = runtime::memory_stats();
    println!("background_collections={}", stats.background_collections);
    println!("given_back={}", stats.stacks_given_back);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static POOL: Pool<usize> = Pool::new(|| MADE.fetch_add(1, SeqCst));
    run(|| {
        (0..10).for_each(|value| POOL.put(value));
        let made = MADE.load(SeqCst);
        runtime::free_os_memory();
        drop(POOL.get());
        println!("left_in_pool={}", made + 1 - MADE.load(SeqCst));
    });
}

/// Goroutines that were deep and wait near the top of their stacks lose what is below, and nothing else:
/// all of them once, while they rest, and then while some go up and down their stacks.
fn while_they_wait() {
    let (turns, arrived) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let goroutines: Vec<_> = (0..how_many())
        .map(|i| {
            let (turns, arrived) = (turns.clone(), arrived.clone());
            go(move || {
                let mut sum = 0;
                for turn in 0..3 {
                    sum += deep();
                    let kept = black_box([i + turn; 300]);
                    arrived.fetch_add(1, SeqCst);
                    while turns.load(SeqCst) == turn {
                        thread::park();
                    }
                    sum += kept.iter().filter(|value| **value == i + turn).count();
                }
                sum
            })
        })
        .collect();
    for turn in 1..=3 {
        while arrived.load(SeqCst) < turn * how_many() {
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("peak_{turn}={}", resident());
        runtime::gc();
        println!("collected_{turn}={}", resident());
        turns.store(turn, SeqCst);
        goroutines.iter().for_each(|goroutine| goroutine.thread().unpark());
    }
    let sum: usize = goroutines.into_iter().map(|one| one.join().expect("it does not panic")).sum();
    println!("sum={sum}");
    println!("shrunk={}", runtime::memory_stats().shrunk_stacks);
    under_way();
}

/// Eight goroutines hand a token round, each from another depth each time, while a plain thread
/// collects again and again.
fn under_way() {
    static ENDS: AtomicUsize = AtomicUsize::new(0);
    let (first, mut before) = gosched::channel::bounded::<u64>(1);
    let mut rounds = Vec::new();
    for i in 0..8_u64 {
        let (to, next) = gosched::channel::bounded(1);
        let from = std::mem::replace(&mut before, next);
        rounds.push(go(move || {
            let mut visits = 0;
            while let Ok(token) = from.recv() {
                deep();
                descend((token + i) % 40, i, &from);
                if to.send(token + 1).is_err() {
                    break;
                }
                visits += 1;
            }
            visits
        }));
    }
    let feeder = go(move || {
        let mut token = 0;
        while ENDS.load(SeqCst) == 0 && first.send(token).is_ok() {
            token += 1;
            let _ = before.try_recv();
        }
    });
    let begun = runtime::memory_stats().shrunk_stacks;
    while runtime::memory_stats().shrunk_stacks < begun + 400 {
        runtime::gc();
    }
    ENDS.store(1, SeqCst);
    feeder.join().expect("it does not panic");
    let visits: u64 = rounds.into_iter().map(|one| one.join().expect("it does not panic")).sum();
    println!("visits={visits}");
}

/// Waits for a token at that depth; what is on the way there must be as it was.
fn descend(levels: u64, i: u64, from: &gosched::channel::Receiver<u64>) {
    let kept = black_box([levels ^ i; 64]);
    match levels {
        0 => drop(from.recv()),
        _ => descend(levels - 1, i, from),
    }
    assert!(kept.iter().all(|value| *value == levels ^ i), "a stack was changed");
}

static PEAK: AtomicUsize = AtomicUsize::new(0);

fn peak() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let is_deep = !is_asked("shallow");
    let goroutines: Vec<_> = (0..how_many())
        .map(|_| {
            let arrived = arrived.clone();
            go(move || {
                if is_deep {
                    deep();
                }
                arrived.fetch_add(1, SeqCst);
                thread::park();
            })
        })
        .collect();
    while arrived.load(SeqCst) < how_many() {
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
