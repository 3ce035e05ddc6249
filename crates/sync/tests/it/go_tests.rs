//! Go's tests of `sync` and `context` by what they show, where nothing else here shows it: named as there.

use crate::support::{ALL, go, ms};
use gosched_sync::context::{self, Context, ContextError};
use gosched_sync::{Arc, Condvar, Map, Mutex, mpsc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// `TestMutexFairness`: one who comes seldom gets it beside one who has it nearly always.
#[test]
fn mutex_fairness() {
    for who in ALL {
        let (lock, stops) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let hog = who.start({
            let (lock, stops) = (lock.clone(), stops.clone());
            move || {
                while stops.load(SeqCst) == 0 {
                    let _held = lock.lock().unwrap();
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_micros(100) {}
                }
            }
        });
        for _ in 0..10 {
            gosched_sched::sleep(Duration::from_micros(100));
            drop(lock.lock().unwrap());
        }
        stops.store(1, SeqCst);
        hog.join();
    }
}

/// `TestCondSignalStealing`: one notification does not end two waits, nor is it lost to one who has
/// given up before.
#[test]
fn cond_signal_stealing() {
    for round in 0..300 {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let (say, waits) = mpsc::channel();
        let first = go({
            let shared = shared.clone();
            move || {
                let held = shared.0.lock().unwrap();
                say.send(()).unwrap();
                drop(shared.1.wait(held).unwrap());
            }
        });
        waits.recv().unwrap();
        let second = go({
            let shared = shared.clone();
            move || {
                let mut held = shared.0.lock().unwrap();
                while !*held {
                    held = shared.1.wait(held).unwrap();
                }
            }
        });
        if round % 2 == 0 {
            gosched_sched::yield_now();
        }
        // The first one waits: it has let go of the lock.
        drop(shared.0.lock().unwrap());
        shared.1.notify_one();
        first.join().unwrap();
        *shared.0.lock().unwrap() = true;
        shared.1.notify_all();
        second.join().unwrap();
    }
}

/// `TestMapMatchesRWMutex`: the same operations on a map of std's behind a lock have the same results.
#[test]
fn map_matches_a_locked_one() {
    let (map, mut model) = (Map::new(), HashMap::new());
    let mut seed = 1_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for step in 0..50_000 {
        let (key, value) = (next(40), next(5));
        match next(8) {
            0 => assert_eq!(map.get(&key), model.get(&key).copied()),
            1 | 2 => assert_eq!(map.insert(key, value), model.insert(key, value)),
            3 => {
                let made = *model.entry(key).or_insert(value);
                assert_eq!(map.get_or_insert_with(key, || value), made);
            }
            4 => assert_eq!(map.remove(&key), model.remove(&key)),
            5 => {
                let new = next(5);
                let swaps = model.get(&key) == Some(&value);
                if swaps {
                    model.insert(key, new);
                }
                assert_eq!(map.compare_and_swap(&key, &value, new), swaps);
            }
            6 => {
                let goes = model.get(&key) == Some(&value);
                if goes {
                    model.remove(&key);
                }
                assert_eq!(map.compare_and_remove(&key, &value), goes);
            }
            _ if step % 500 == 0 => {
                map.clear();
                model.clear();
            }
            _ => {
                let (mut all, mut expected) = (map.entries(), Vec::from_iter(model.clone()));
                all.sort_unstable();
                expected.sort_unstable();
                assert_eq!(
                    (all, map.len(), map.is_empty()),
                    (expected, model.len(), model.is_empty())
                );
            }
        }
    }
}

/// `TestConcurrentRange`, `TestConcurrentClear`: keys that stay are in every list of entries, once each,
/// whatever comes and goes meanwhile.
#[test]
fn map_entries_while_others_write() {
    let (map, stops) = (Arc::new(Map::new()), Arc::new(AtomicUsize::new(0)));
    (0..64_u64).for_each(|key| assert_eq!(map.insert(key, 0), None));
    let writers = [0_u64, 1].map(|n| {
        let (map, stops) = (map.clone(), stops.clone());
        ALL[n as usize].start(move || {
            let mut round = 0_u64;
            while stops.load(SeqCst) == 0 {
                map.insert(round % 64, round);
                map.insert(1_000 + n, round);
                map.remove(&(1_000 + n));
                round += 1;
            }
        })
    });
    for _ in 0..200 {
        let mut keys: Vec<_> = map.entries().iter().map(|(key, _)| *key).collect();
        keys.retain(|key| *key < 1_000);
        keys.sort_unstable();
        assert_eq!(keys, (0..64).collect::<Vec<_>>());
    }
    stops.store(1, SeqCst);
    writers.into_iter().for_each(|writer| writer.join());
    map.clear();
    assert!(map.is_empty());
}

/// `TestInterlockedCancels`: the end of a child's wait cancels its parent, and the other way round.
#[test]
fn interlocked_cancels() {
    let (parent, cancel_parent) = context::with_cancel(&context::background());
    let (child, cancel_child) = context::with_cancel(&parent);
    let watches = go({
        let parent = parent.clone();
        move || {
            parent.done().recv().unwrap_err();
            cancel_child.cancel();
        }
    });
    cancel_parent.cancel();
    child.done().recv().unwrap_err();
    watches.join().unwrap();
}

/// `TestLayersCancel`, `TestLayersTimeout`: a hundred layers by chance end with the top one, and show
/// the values of those above and none of those below.
#[test]
fn layers() {
    for end_by_time in [false, true] {
        let (top, cancel) = if end_by_time {
            context::with_timeout(&context::background(), ms(2))
        } else {
            context::with_cancel(&context::background())
        };
        let (mut layers, mut cancels): (Vec<Context>, _) = (vec![top], Vec::new());
        for n in 0..100_usize {
            let parent = &layers[n];
            let layer = match n * 7 % 3 {
                0 => context::with_value(parent, n),
                1 => {
                    let (layer, cancel) = context::with_cancel(parent);
                    cancels.push(cancel);
                    layer
                }
                _ => {
                    let (layer, cancel) = context::with_timeout(parent, HOUR);
                    cancels.push(cancel);
                    layer
                }
            };
            layers.push(layer);
        }
        for (n, layer) in layers.iter().enumerate().skip(1) {
            let nearest = (0..n).rev().find(|m| m * 7 % 3 == 0);
            assert_eq!(layer.value::<usize>().copied(), nearest, "layer {n}");
        }
        let expected = if end_by_time {
            ContextError::DeadlineExceeded
        } else {
            assert!(layers.iter().all(|layer| layer.err().is_none()));
            cancel.cancel();
            ContextError::Canceled
        };
        for layer in &layers {
            layer.done().recv().unwrap_err();
            assert_eq!(layer.err(), Some(expected));
        }
    }
}

/// `TestAfterFuncCalledAsynchronously`: a function that takes long does not hold up whoever cancels.
#[test]
fn after_func_called_asynchronously() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (release, held) = mpsc::channel::<()>();
    let (say, ended) = mpsc::channel();
    let after = context::after_func(&ctx, move || {
        held.recv().unwrap();
        say.send(()).unwrap();
    });
    cancel.cancel();
    assert!(!after.stop());
    assert!(ended.try_recv().is_err());
    release.send(()).unwrap();
    ended.recv().unwrap();
}

/// `TestCauseRace`, `TestContextErrDoneRace`, `TestSimultaneousCancels`: of several who cancel one counts,
/// whose cause everybody sees; and whoever sees an end by one way sees it by the others.
#[test]
fn cause_and_done_races() {
    let mut won = [0_u32; 2];
    let mut round = 0_u32;
    while round < 300 || won.contains(&0) {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let cancel = Arc::new(cancel);
        let causes = if round.is_multiple_of(2) { ["a", "b"] } else { ["b", "a"] };
        let others = causes.map(|cause| {
            let cancel = cancel.clone();
            go(move || cancel.cancel_cause(cause))
        });
        let by_error = go({
            let ctx = ctx.clone();
            move || {
                while ctx.err().is_none() {
                    gosched_sched::yield_now();
                }
                assert!(ctx.done().try_recv().is_err());
                assert_eq!(ctx.done().recv().ok(), None);
                ctx.cause().unwrap().to_string()
            }
        });
        ctx.done().recv().unwrap_err();
        assert_eq!(ctx.err(), Some(ContextError::Canceled));
        let cause = ctx.cause().unwrap().to_string();
        assert_eq!(by_error.join().unwrap(), cause);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(ctx.cause().unwrap().to_string(), cause);
        won[usize::from(cause == "b")] += 1;
        round += 1;
    }
}
