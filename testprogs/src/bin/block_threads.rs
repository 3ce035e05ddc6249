//! How many threads blocking calls take: at the limit, when the system refuses threads, and when
//! nothing can help. The first argument is the kind; with `-without-signals` a filter refuses those. Prints `key=value` lines.

use gosched::{blocking, go, run, runtime, thread};
use std::cell::UnsafeCell;
use std::env;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testprogs::filter;

fn main() {
    let kind = env::args().nth(1).expect("a kind");
    let shortened = kind.strip_suffix("-without-signals").map(str::to_owned);
    if shortened.is_some() {
        filter::refuse(&[libc::SYS_rt_tgsigqueueinfo, libc::SYS_tgkill], libc::EPERM);
    }
    let kind = shortened.unwrap_or(kind);
    run(move || match kind.as_str() {
        "limit" => blocks(60),
        "refused" => {
            refuse_threads();
            blocks(60);
        }
        "memoryless" => {
            refuse_memory();
            // No timers, which need memory of their own.
            start_blocks(60).into_iter().for_each(|g| g.join().unwrap());
            print("done", 60);
        }
        "pipes" => pipes(number(2), number(3), env::args().nth(4).as_deref() == Some("declared")),
        "locked" => locked(),
        "ticker" => ticker(),
        "held" => held(),
        "stop-at-limit" => stop_at_limit(),
        other => panic!("no kind {other}"),
    });
}

fn number(index: usize) -> usize {
    env::args().nth(index).and_then(|text| text.parse().ok()).expect("a number")
}

fn print(key: &str, value: impl std::fmt::Display) {
    println!("{key}={value}");
}

/// Half of them declare that they block, half do not.
fn start_blocks(count: usize) -> Vec<thread::JoinHandle<()>> {
    let sleep = || std::thread::sleep(Duration::from_millis(5));
    let start = |i| go(move || if i % 2 == 0 { blocking(sleep) } else { sleep() });
    (0..count).map(start).collect()
}

fn blocks(count: usize) {
    let all = start_blocks(count);
    let most = go(|| (0..20).map(|_| machines_after_ms(1)).max());
    all.into_iter().for_each(|g| g.join().unwrap());
    print("machines_max", most.join().unwrap().unwrap_or(0));
    print("done", count);
}

fn machines_after_ms(ms: u64) -> u64 {
    thread::sleep(Duration::from_millis(ms));
    runtime::counters().machines
}

/// From here on no thread can be made in this process: `clone` fails as it does at `ulimit -u`.
fn refuse_threads() {
    filter::refuse(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN);
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "threads are refused");
}

/// From here on there is no memory but what libc and the runtime have at hand: stacks for threads and
/// for goroutines, and what libc's allocator gets without a mapping.
fn refuse_memory() {
    const AT_HAND: usize = 80;
    let all_are_there = Arc::new(gosched::sync::Barrier::new(AT_HAND));
    let all: Vec<_> = (0..AT_HAND)
        .map(|_| {
            let all_are_there = all_are_there.clone();
            go(move || all_are_there.wait())
        })
        .collect();
    all.into_iter().for_each(|g| assert!(g.join().is_ok()));
    let all_are_there = Arc::new(std::sync::Barrier::new(AT_HAND));
    let all: Vec<_> = (0..AT_HAND)
        .map(|_| {
            let all_are_there = all_are_there.clone();
            // As large as a machine's.
            let builder = std::thread::Builder::new().stack_size(256 << 10);
            builder.spawn(move || all_are_there.wait()).expect("there is memory")
        })
        .collect();
    all.into_iter().for_each(|thread| assert!(thread.join().is_ok()));
    filter::refuse(&[libc::SYS_mmap], libc::ENOMEM);
    let large = std::thread::Builder::new().stack_size(64 << 20);
    assert!(large.spawn(|| ()).is_err(), "memory is refused");
}

/// `count` goroutines read one byte each from `shared` pipes that stay empty for a while.
fn pipes(count: usize, shared: usize, is_declared: bool) {
    let (readers, mut writers): (Vec<_>, Vec<_>) =
        (0..shared).map(|_| io::pipe().expect("a pipe")).unzip();
    let readers = Arc::new(readers);
    // A plain thread, made first: with every machine in a read no goroutine runs, this one
    // included.
    let bytes = vec![1; count.div_ceil(shared)];
    let writer = std::thread::spawn(move || {
        wait_until_still();
        print("machines_blocked", runtime::counters().machines);
        writers.iter_mut().for_each(|writer| writer.write_all(&bytes).expect("there is room"));
        writers
    });
    let all: Vec<_> = (0..count)
        .map(|i| {
            let readers = readers.clone();
            go(move || {
                let mut byte = [0];
                let mut read = || (&readers[i % readers.len()]).read_exact(&mut byte);
                let done = if is_declared { blocking(read) } else { read() };
                done.expect("a byte comes");
            })
        })
        .collect();
    all.into_iter().for_each(|g| g.join().unwrap());
    drop(writer.join().unwrap());
    print("done", count);
    let patience = Instant::now();
    while runtime::counters().machines > 32 && patience.elapsed() < Duration::from_secs(200) {
        thread::sleep(Duration::from_millis(50));
    }
    print("machines_left", runtime::counters().machines);
    print("threads_left", std::fs::read_dir("/proc/self/task").expect("/proc").count());
}

/// Returns when no new thread has come for a while.
fn wait_until_still() {
    let mut before = 0;
    let mut quiet = 0;
    while quiet < 5 || before < 10 {
        std::thread::sleep(Duration::from_millis(60));
        let now = runtime::counters().machines;
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
}

/// Every thread belongs to a goroutine that waits: nothing can ever run.
fn locked() {
    let all: Vec<_> = (0..20)
        .map(|_| {
            go(|| {
                runtime::lock_os_thread();
                thread::sleep(Duration::from_millis(20));
            })
        })
        .collect();
    all.into_iter().for_each(|g| g.join().unwrap());
    print("done", "unexpected");
}

/// Bursts of goroutines that block until all of a burst do, beside one that sleeps for 1 ms again and
/// again.
fn ticker() {
    const BURSTS: usize = 4;
    const EACH: usize = 200;
    let before = runtime::counters();
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let ticks = go(move || {
        let mut ticks = 0_u64;
        // ORDERING: Relaxed; there is nothing else to see.
        while !seen.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
            ticks += 1;
        }
        ticks
    });
    for burst in 0..BURSTS {
        let is_declared = burst % 2 == 0;
        let (reader, writer) = io::pipe().expect("a pipe");
        let (reader, blocked) = (Arc::new(reader), Arc::new(AtomicUsize::new(0)));
        let freeing = std::thread::spawn({
            let blocked = blocked.clone();
            move || {
                // ORDERING: Relaxed; there is nothing else to see.
                while blocked.load(Relaxed) < EACH {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // The end of the file for all of them.
                drop(writer);
            }
        });
        let all: Vec<_> = (0..EACH)
            .map(|_| {
                let (reader, blocked) = (reader.clone(), blocked.clone());
                go(move || {
                    // ORDERING: Relaxed; as above.
                    blocked.fetch_add(1, Relaxed);
                    let read = || (&*reader).read(&mut [0]);
                    let end = if is_declared { blocking(read) } else { read() };
                    assert_eq!(end.expect("a pipe can be read"), 0);
                })
            })
            .collect();
        all.into_iter().for_each(|g| g.join().unwrap());
        freeing.join().unwrap();
    }
    // ORDERING: Relaxed; as above.
    over.store(true, Relaxed);
    print("ticks", ticks.join().unwrap());
    let after = runtime::counters();
    print("goroutines", BURSTS * EACH);
    print("monitor_calls", after.monitor_calls - before.monitor_calls);
    let declared = after.declared_hand_offs - before.declared_hand_offs;
    print("hand_offs", declared + after.undeclared_hand_offs - before.undeclared_hand_offs);
}

/// A lock that everybody waits for. std's waits come by the runtime, libc's do not.
enum Held {
    Std(Mutex<()>),
    Libc(UnsafeCell<libc::pthread_mutex_t>),
}

// SAFETY: libc's lock is for all threads, and never moved: it is in an `Arc`.
unsafe impl Sync for Held {}
// SAFETY: as above.
unsafe impl Send for Held {}

impl Held {
    fn with(&self, f: impl FnOnce()) {
        match self {
            Held::Std(lock) => {
                let _guard = lock.lock().unwrap();
                f();
            }
            Held::Libc(lock) => {
                // SAFETY: initialised, see `Sync`.
                assert_eq!(unsafe { libc::pthread_mutex_lock(lock.get()) }, 0);
                f();
                // SAFETY: as above, and locked here.
                assert_eq!(unsafe { libc::pthread_mutex_unlock(lock.get()) }, 0);
            }
        }
    }
}

/// At a limit of 8 threads: the holder of a lock lets go only when 6 others wait for it, all of them
/// fresh goroutines that came first in the queue. It computes meanwhile, so that it has to be
/// stopped, or yields.
fn held() {
    const OTHERS: usize = 100;
    let lock = match env::args().nth(2).as_deref() {
        Some("std") => Held::Std(Mutex::new(())),
        _ => Held::Libc(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
    };
    let yields = env::args().nth(3).as_deref() == Some("yields");
    runtime::gomaxprocs(number(4));
    let lock = Arc::new(lock);
    let waiting = Arc::new(AtomicUsize::new(0));
    let stopped = runtime::preemptions().in_place;
    let holder = go({
        let (lock, waiting) = (lock.clone(), waiting.clone());
        move || {
            let mut others = Vec::new();
            lock.with(|| {
                others.extend((0..OTHERS).map(|_| {
                    let (lock, waiting) = (lock.clone(), waiting.clone());
                    go(move || {
                        // ORDERING: Relaxed; there is nothing else to see.
                        waiting.fetch_add(1, Relaxed);
                        lock.with(|| ());
                    })
                }));
                // ORDERING: Relaxed; as above.
                while waiting.load(Relaxed) < 6 {
                    if yields {
                        thread::yield_now();
                    }
                }
            });
            others
        }
    });
    let others = holder.join().unwrap();
    others.into_iter().for_each(|g| g.join().unwrap());
    print("done", OTHERS);
    print("stopped", runtime::preemptions().in_place - stopped);
}

/// The world can be stopped while processors wait for a thread.
fn stop_at_limit() {
    let all: Vec<_> =
        (0..30).map(|_| go(|| std::thread::sleep(Duration::from_millis(5)))).collect();
    for n in [1, 4, 2, 3] {
        runtime::gomaxprocs(n);
        thread::sleep(Duration::from_millis(1));
    }
    all.into_iter().for_each(|g| g.join().unwrap());
    print("done", 30);
}
