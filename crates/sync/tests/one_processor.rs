//! Locks on one processor: how often one may be overtaken. What runs is the scheduler's choice
//! alone there, so it can be counted.

use gosched_sched::{JoinHandle, SpawnOptions, gosched, spawn, yield_now};
use gosched_sync::{Arc, Mutex, RwLock};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "shared with the tests of channels")]
#[path = "../../channel/tests/it/undisturbed.rs"]
mod undisturbed;
use undisturbed::undisturbed;

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

/// One thread, so the tests are one.
#[test]
fn on_one_processor() {
    undisturbed::on_one_processor(|| {
        check("one who locks", 1, one_who_locks_again_and_again_is_passed);
        // Each of the four may come once more while the writer is on its way.
        check("readers", 4, a_writer_passes_readers_who_come_again_and_again);
        check("writers", 2, a_reader_passes_writers_who_come_again_and_again);
        one_who_was_woken_is_not_passed_all_the_time();
    });
}

/// Runs `scenario`, in which somebody is overtaken by so many others, wherever the rounds fall in it
/// that take the ring's head first.
fn check(others: &str, count: usize, scenario: fn() -> Overtaking) {
    for _ in 0..10 {
        let Overtaking { most, taken } = undisturbed(scenario);
        assert!(taken >= 10, "{others} took it {taken} times");
        assert!(most <= count * OVERTAKEN_MAX, "{others} overtook {most} times");
        yield_now();
    }
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

/// What came of a scenario.
struct Overtaking {
    /// How often others took the lock during one wait, at most.
    most: usize,
    /// How often they took it altogether.
    taken: usize,
}

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
fn one_who_locks_again_and_again_is_passed() -> Overtaking {
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
    Overtaking { most, taken: shared.1.taken.load(SeqCst) }
}

fn a_writer_passes_readers_who_come_again_and_again() -> Overtaking {
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
    Overtaking { most, taken: shared.1.taken.load(SeqCst) }
}

fn a_reader_passes_writers_who_come_again_and_again() -> Overtaking {
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
    Overtaking { most, taken: shared.1.taken.load(SeqCst) }
}

/// One that comes out of turn, from the global queue in its round, takes a lock for which another was
/// woken, again and again: the first time it lets go, the one that was woken has its turn.
fn one_who_was_woken_is_not_passed_all_the_time() {
    const TIMES: usize = 100;
    let shared = Arc::new((Mutex::new(()), Counts::default()));
    let holder = go({
        let shared = shared.clone();
        move || {
            while !shared.1.stop.load(SeqCst) {
                let guard = shared.0.lock().unwrap();
                yield_now();
                drop(guard);
                yield_now();
            }
        }
    });
    let out_of_turn = go({
        let shared = shared.clone();
        move || {
            while !shared.1.stop.load(SeqCst) {
                gosched();
                for _ in 0..TIMES {
                    drop(shared.0.lock().unwrap());
                    shared.1.taken.fetch_add(1, SeqCst);
                }
            }
        }
    });
    let (mut waits, mut most) = (0, 0);
    // Many rounds of that one, wherever they fall in a wait.
    while shared.1.taken.load(SeqCst) < 200 * TIMES {
        (0..waits % 7).for_each(|_| yield_now());
        waits += 1;
        let before = shared.1.taken.load(SeqCst);
        let guard = shared.0.lock().unwrap();
        let count = shared.1.taken.load(SeqCst) - before;
        drop(guard);
        most = most.max(count);
    }
    shared.1.stop.store(true, SeqCst);
    holder.join().unwrap();
    out_of_turn.join().unwrap();
    assert!(most < TIMES / 2, "passed {most} times in {waits} waits");
}
