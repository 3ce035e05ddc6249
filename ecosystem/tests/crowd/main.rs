//! Crates that keep something for each thread, in a hundred thousand live goroutines.
//!
//! Each goroutine is a thread to them. A test has all goroutines use the crate, keeps them alive
//! until the last one has, and has all use it once more. What it says of each crate is in
//! `docs/CRATES.md`.

mod child;

use arc_swap::ArcSwap;
use child::in_child;
use gosched::sync::WaitGroup;
use gosched::{channel, go, hosted, run, runtime};
use rand::Rng;
use std::collections::HashSet;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CROWD: usize = 100_000;

/// Has `act` run twice in each of a hundred thousand goroutines that live at the same time.
fn crowd(act: impl Fn(usize) + Send + Sync + 'static) {
    crowd_by(CROWD, act);
}

/// As [`crowd`], but only so many use the crate for the first time at once.
fn crowd_by(beginners: usize, act: impl Fn(usize) + Send + Sync + 'static) {
    run(move || {
        let act = Arc::new(act);
        let (open, gate) = channel::bounded::<()>(0);
        let used = WaitGroup::new();
        let start = Instant::now();
        let all: Vec<_> = (0..CROWD)
            .map(|n| {
                if n % beginners == 0 {
                    used.wait();
                }
                used.add(1);
                let (act, gate, used) = (act.clone(), gate.clone(), used.clone());
                go(move || {
                    act(n);
                    used.done();
                    // Closed when all have come here.
                    assert!(gate.recv().is_err());
                    act(n);
                })
            })
            .collect();
        used.wait();
        let first = start.elapsed();
        assert!(runtime::num_goroutine() >= CROWD);
        drop(open);
        all.into_iter().for_each(|g| g.join().expect("it does not panic"));
        println!("{CROWD} goroutines: first use {first:?}, in all {:?}", start.elapsed());
    });
}

#[test]
fn rand_has_a_generator_for_each() {
    in_child("rand_has_a_generator_for_each", || {
        static SEEN: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
        crowd(|_| {
            let drawn = rand::rng().random::<u64>();
            SEEN.lock().unwrap().get_or_insert_default().insert(drawn);
        });
        assert_eq!(SEEN.lock().unwrap().as_ref().map_or(0, HashSet::len), 2 * CROWD);
    });
}

/// A wait makes a record of the thread, and a table of all of them grows under a lock of everybody's:
/// with all beginners at once they would wait for each other for minutes.
#[test]
fn parking_lot_parks_each() {
    in_child("parking_lot_parks_each", || {
        static WAITS: AtomicUsize = AtomicUsize::new(0);
        crowd_by(100, |_| {
            let (lock, never) = (parking_lot::Mutex::new(0), parking_lot::Condvar::new());
            let mut count = lock.lock();
            assert!(never.wait_for(&mut count, Duration::ZERO).timed_out());
            WAITS.fetch_add(1, SeqCst);
        });
        assert_eq!(WAITS.load(SeqCst), 2 * CROWD);
    });
}

/// What each has retired is freed in the end. The first use on a thread looks at all others, so that
/// it takes a hundred thousand of them minutes without `hosted`.
#[test]
fn crossbeam_epoch_frees_what_is_retired() {
    in_child("crossbeam_epoch_frees_what_is_retired", || {
        static FREED: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl Drop for Counted {
            fn drop(&mut self) {
                FREED.fetch_add(1, SeqCst);
            }
        }
        crowd(|_| {
            hosted(|| {
                let guard = crossbeam_epoch::pin();
                let retired = crossbeam_epoch::Owned::new(Counted).into_shared(&guard);
                // SAFETY: nobody else has seen it.
                unsafe { guard.defer_destroy(retired) };
            });
        });
        // A thread that is not used any more keeps what its bag holds.
        const BAG: usize = 64;
        let kept = BAG * runtime::counters().machines as usize;
        while FREED.load(SeqCst) + kept < 2 * CROWD {
            crossbeam_epoch::pin().flush();
        }
    });
}

/// A store looks at every thread that has loaded; with `hosted` those are a few.
#[test]
fn arc_swap_loads_in_each_and_stores() {
    in_child("arc_swap_loads_in_each_and_stores", || {
        let value = Arc::new(ArcSwap::from_pointee(0_usize));
        let theirs = value.clone();
        static STORES: AtomicU64 = AtomicU64::new(0);
        crowd(move |n| {
            let seen = hosted(|| **theirs.load());
            assert!(seen <= CROWD);
            if n % 100 == 0 {
                hosted(|| theirs.store(Arc::new(n)));
                STORES.fetch_add(1, SeqCst);
            }
        });
        assert_eq!(STORES.load(SeqCst), 2 * CROWD as u64 / 100);
        assert!(**value.load() < CROWD);
    });
}

/// Its registry has room for 4,096 threads; with `hosted` it sees a few.
#[test]
fn tracing_registers_spans_of_each() {
    in_child("tracing_registers_spans_of_each", || {
        use tracing_subscriber::layer::SubscriberExt;
        static CLOSED: AtomicUsize = AtomicUsize::new(0);
        struct Closed;
        impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Closed {
            fn on_close(&self, _: tracing::span::Id, _: tracing_subscriber::layer::Context<'_, S>) {
                CLOSED.fetch_add(1, SeqCst);
            }
        }
        let subscriber = tracing_subscriber::registry().with(Closed);
        tracing::subscriber::set_global_default(subscriber).expect("the first one");
        crowd(|n| {
            hosted(|| {
                let _entered = tracing::info_span!("goroutine", n).entered();
                tracing::info!("in it");
            });
        });
        assert_eq!(CLOSED.load(SeqCst), 2 * CROWD);
    });
}

/// The limit that the test above is about is still there: without `hosted` somebody panics.
#[test]
fn tracing_has_a_limit_without_hosted() {
    in_child("tracing_has_a_limit_without_hosted", || {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(subscriber).expect("the first one");
        run(|| {
            let (open, gate) = channel::bounded::<()>(0);
            let used = WaitGroup::new();
            let all: Vec<_> = (0..6_000)
                .map(|n| {
                    used.add(1);
                    let (gate, used) = (gate.clone(), used.clone());
                    go(move || {
                        let made = catch_unwind(|| drop(tracing::info_span!("goroutine", n)));
                        used.done();
                        assert!(gate.recv().is_err());
                        made.is_ok()
                    })
                })
                .collect();
            used.wait();
            drop(open);
            let made = all.into_iter().map(|g| g.join().expect("caught"));
            let made = made.filter(|is_made| *is_made).count();
            assert!(made < 6_000, "no limit any more: docs/CRATES.md can say so");
            assert!(made >= 4_000, "only {made} of 6,000 goroutines made a span");
        });
    });
}
