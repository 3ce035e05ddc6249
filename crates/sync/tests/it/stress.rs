//! Everything at once, with a seed: nobody holds a lock beside another, no permit and no
//! notification is lost, and everything that can happen did.

use crate::support::{Running, Who};
use gosched_base::Rng;
use gosched_sync::context::{self, Context};
use gosched_sync::{Arc, Condvar, Mutex, RwLock, Semaphore};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// How often each thing was done.
#[derive(Debug, Default)]
struct Seen {
    locked: AtomicUsize,
    lock_cancelled: AtomicUsize,
    wrote: AtomicUsize,
    read: AtomicUsize,
    write_cancelled: AtomicUsize,
    read_cancelled: AtomicUsize,
    permits: AtomicUsize,
    permit_timed_out: AtomicUsize,
    permit_cancelled: AtomicUsize,
    taken: AtomicUsize,
    take_timed_out: AtomicUsize,
}

struct Shared {
    seen: Seen,
    mutex: Mutex<usize>,
    lock: RwLock<[usize; 4]>,
    semaphore: Semaphore,
    out: AtomicUsize,
    /// Items that were put and not taken.
    store: Mutex<usize>,
    bell: Condvar,
}

fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Relaxed);
}

fn a_moment(rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.below(40).into())
}

fn pause(rng: &mut Rng) {
    if rng.below(4) == 0 {
        gosched_sched::yield_now();
    }
}

fn soon(rng: &mut Rng) -> (Context, context::Cancel) {
    context::with_timeout(&context::background(), a_moment(rng))
}

fn lock(rng: &mut Rng, shared: &Shared) {
    let guard = if rng.below(3) == 0 {
        let (ctx, _cancel) = soon(rng);
        shared.mutex.lock_ctx(&ctx).ok()
    } else {
        shared.mutex.lock().ok()
    };
    match guard {
        Some(mut guard) => {
            let before = *guard;
            pause(rng);
            *guard = before + 1;
            add(&shared.seen.locked);
        }
        None => add(&shared.seen.lock_cancelled),
    }
}

fn read_or_write(rng: &mut Rng, shared: &Shared) {
    let limit = (rng.below(3) == 0).then(|| soon(rng));
    if rng.below(4) == 0 {
        let values = match &limit {
            Some((ctx, _cancel)) => shared.lock.write_ctx(ctx).ok(),
            None => shared.lock.write().ok(),
        };
        let Some(mut values) = values else { return add(&shared.seen.write_cancelled) };
        for value in values.iter_mut() {
            *value += 1;
            pause(rng);
        }
        add(&shared.seen.wrote);
    } else {
        let values = match &limit {
            Some((ctx, _cancel)) => shared.lock.read_ctx(ctx).ok(),
            None => shared.lock.read().ok(),
        };
        let Some(values) = values else { return add(&shared.seen.read_cancelled) };
        for _ in 0..3 {
            assert!(values.iter().all(|v| *v == values[0]), "a reader beside a writer");
            pause(rng);
        }
        add(&shared.seen.read);
    }
}

fn permits(rng: &mut Rng, shared: &Shared) {
    let many = 1 + rng.below(3) as usize;
    let permit = match rng.below(3) {
        0 => shared.semaphore.acquire_timeout(a_moment(rng)),
        1 => {
            let (ctx, _cancel) = soon(rng);
            shared.semaphore.acquire_ctx(&ctx)
        }
        _ => Ok(shared.semaphore.acquire_many(many)),
    };
    match permit {
        Ok(permit) => {
            let out = shared.out.fetch_add(permit.permits(), Relaxed) + permit.permits();
            assert!(out <= 3, "{out} permits of 3 are out");
            pause(rng);
            shared.out.fetch_sub(permit.permits(), Relaxed);
            add(&shared.seen.permits);
        }
        Err(gosched_sync::AcquireError::Timeout) => add(&shared.seen.permit_timed_out),
        Err(gosched_sync::AcquireError::Cancelled) => add(&shared.seen.permit_cancelled),
    }
}

fn put(shared: &Shared) {
    *shared.store.lock().unwrap() += 1;
    shared.bell.notify_one();
}

/// Takes one item, by waits that may time out at the moment of a notification.
fn take(rng: &mut Rng, shared: &Shared) {
    let mut store = shared.store.lock().unwrap();
    while *store == 0 {
        let (again, result) = shared.bell.wait_timeout(store, a_moment(rng)).unwrap();
        store = again;
        if result.timed_out() {
            add(&shared.seen.take_timed_out);
        }
    }
    *store -= 1;
    add(&shared.seen.taken);
}

/// One that never looks by itself: a lost notification would leave it waiting.
fn take_patiently(shared: &Shared) {
    let store = shared.store.lock().unwrap();
    *shared.bell.wait_while(store, |store| *store == 0).unwrap() -= 1;
    add(&shared.seen.taken);
}

const WORKERS: u64 = 12;
const ROUNDS: usize = 400;

/// So often at most until everything has been seen.
const RUNS_MAX: u64 = 50;

#[test]
fn everything_at_once() {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let shared = Arc::new(Shared {
        seen: Seen::default(),
        mutex: Mutex::new(0),
        lock: RwLock::new([0; 4]),
        semaphore: Semaphore::new(3),
        out: AtomicUsize::new(0),
        store: Mutex::new(0),
        bell: Condvar::new(),
    });
    let mut runs = 0;
    while runs == 0 || (runs < RUNS_MAX && not_seen(&shared.seen).is_some()) {
        runs += 1;
        run(seed ^ (runs << 32), &shared);
        check(&shared, runs as usize);
    }
    assert_eq!(not_seen(&shared.seen), None, "{:?}", shared.seen);
}

fn run(seed: u64, shared: &Arc<Shared>) {
    let workers: Vec<Running<()>> = (0..WORKERS)
        .map(|n| {
            let shared = shared.clone();
            let who = if n % 3 == 0 { Who::Thread } else { Who::Goroutine };
            who.start(move || {
                let mut rng = Rng::new(seed ^ n);
                for _ in 0..ROUNDS {
                    lock(&mut rng, &shared);
                    read_or_write(&mut rng, &shared);
                    permits(&mut rng, &shared);
                    // As many puts as takes, so all of them end.
                    match n % 4 {
                        0 | 1 => put(&shared),
                        2 => take(&mut rng, &shared),
                        _ => take_patiently(&shared),
                    }
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|w| w.join());
}

fn check(shared: &Shared, runs: usize) {
    let seen = &shared.seen;
    let count = |counter: &AtomicUsize| counter.load(Relaxed);
    assert_eq!(*shared.mutex.lock().unwrap(), count(&seen.locked));
    assert_eq!(*shared.lock.read().unwrap(), [count(&seen.wrote); 4]);
    let all = WORKERS as usize * ROUNDS * runs;
    assert_eq!(count(&seen.locked) + count(&seen.lock_cancelled), all);
    let not_in = count(&seen.write_cancelled) + count(&seen.read_cancelled);
    assert_eq!(count(&seen.wrote) + count(&seen.read) + not_in, all);
    let no_permit = count(&seen.permit_timed_out) + count(&seen.permit_cancelled);
    assert_eq!(count(&seen.permits) + no_permit, all);
    assert_eq!((shared.semaphore.available_permits(), *shared.store.lock().unwrap()), (3, 0));
    assert_eq!(count(&seen.taken), all / 2);
}

/// What should happen and has not yet.
fn not_seen(seen: &Seen) -> Option<&'static str> {
    [
        ("locks given up", &seen.lock_cancelled),
        ("writes given up", &seen.write_cancelled),
        ("reads given up", &seen.read_cancelled),
        ("permits not in time", &seen.permit_timed_out),
        ("permits given up", &seen.permit_cancelled),
        ("waits not notified in time", &seen.take_timed_out),
    ]
    .into_iter()
    .find_map(|(what, counter)| (counter.load(Relaxed) == 0).then_some(what))
}
