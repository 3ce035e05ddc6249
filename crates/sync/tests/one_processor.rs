//! Locks on one processor: how often one may be overtaken. What runs is the scheduler's choice
//! alone there, so it can be counted.

use gosched_sched::{Config, JoinHandle, SpawnOptions, run, spawn, yield_now};
use gosched_sync::{Arc, Mutex, RwLock};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

/// One thread, so the tests are one.
#[test]
fn on_one_processor() {
    // Nobody is stopped at a slice's end, which would send it behind all others.
    let _ = Config::new().procs(1).slice(Duration::from_secs(3600)).start();
    run(|| {
        one_who_locks_again_and_again_is_passed();
        a_writer_passes_readers_who_come_again_and_again();
        a_reader_passes_writers_who_come_again_and_again();
    });
}

fn compute(d: Duration) {
    let start = Instant::now();
    while start.elapsed() < d {
        std::hint::spin_loop();
    }
}

const HOLD: Duration = Duration::from_micros(100);

/// What the one that waits may see others do between its wish and its turn: those that hold the
/// lock when it comes, and the one unlock that wakes it.
const OVERTAKEN_MAX: usize = 4;

#[derive(Default)]
struct Counts {
    /// How often others have taken the lock.
    taken: AtomicUsize,
    stop: AtomicBool,
}

/// How often others took the lock while the caller waited for it, at most of some tries. Between
/// them the caller yields, so that it comes while the lock is held.
fn overtaken(counts: &Counts, lock: impl Fn()) -> usize {
    let most = (0..20)
        .map(|_| {
            yield_now();
            let before = counts.taken.load(SeqCst);
            lock();
            counts.taken.load(SeqCst) - before
        })
        .max();
    counts.stop.store(true, SeqCst);
    most.unwrap_or(0)
}

/// Holds a lock for 100 us, gives way while it holds it, and takes it again at once.
fn one_who_locks_again_and_again_is_passed() {
    let shared = Arc::new((Mutex::new(()), Counts::default()));
    let hog = go({
        let shared = shared.clone();
        move || {
            while !shared.1.stop.load(SeqCst) {
                let _guard = shared.0.lock().unwrap();
                shared.1.taken.fetch_add(1, SeqCst);
                yield_now();
                compute(HOLD);
            }
        }
    });
    let most = overtaken(&shared.1, || drop(shared.0.lock().unwrap()));
    hog.join().unwrap();
    assert!(shared.1.taken.load(SeqCst) >= 10, "the hog held it");
    assert!(most <= OVERTAKEN_MAX, "overtaken {most} times");
}

fn a_writer_passes_readers_who_come_again_and_again() {
    let shared = Arc::new((RwLock::new(()), Counts::default()));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            go(move || {
                while !shared.1.stop.load(SeqCst) {
                    let _guard = shared.0.read().unwrap();
                    shared.1.taken.fetch_add(1, SeqCst);
                    yield_now();
                    compute(HOLD);
                }
            })
        })
        .collect();
    let most = overtaken(&shared.1, || drop(shared.0.write().unwrap()));
    readers.into_iter().for_each(|r| r.join().unwrap());
    assert!(shared.1.taken.load(SeqCst) >= 10, "they read");
    // Each of the four may come once more while the writer is on its way.
    assert!(most <= 4 * OVERTAKEN_MAX, "overtaken {most} times");
}

fn a_reader_passes_writers_who_come_again_and_again() {
    let shared = Arc::new((RwLock::new(()), Counts::default()));
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let shared = shared.clone();
            go(move || {
                while !shared.1.stop.load(SeqCst) {
                    let _guard = shared.0.write().unwrap();
                    shared.1.taken.fetch_add(1, SeqCst);
                    yield_now();
                    compute(HOLD);
                }
            })
        })
        .collect();
    let most = overtaken(&shared.1, || drop(shared.0.read().unwrap()));
    writers.into_iter().for_each(|w| w.join().unwrap());
    assert!(shared.1.taken.load(SeqCst) >= 10, "they wrote");
    assert!(most <= 2 * OVERTAKEN_MAX, "overtaken {most} times");
}
