//! Models of the injector:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-runq --release --test loom_injector`.
//!
//! Each test names changes of the code that it is known to catch.
#![cfg(loom)]

mod model;

use std::sync::Arc;

use gosched_runq::Injector;
use loom::thread;

use self::model::{assert_all_once, explore, run_all, task};

/// Catches: `Injector::push` with a relaxed compare-exchange, `Injector::take_all` with a relaxed
/// swap (a taken task is not visible); `push` with a store instead (lost); `take_all` that loads
/// and then stores null (lost); `push` that links only once, before its loop (lost).
#[test]
fn pushes_against_take_all() {
    let taken = explore(|| {
        let injector = Arc::new(Injector::new());
        let pusher = thread::spawn({
            let injector = injector.clone();
            move || injector.push(task(0))
        });
        let taker = thread::spawn({
            let injector = injector.clone();
            move || [run_all(injector.take_all()), run_all(injector.take_all())]
        });

        injector.push(task(1));
        injector.push(task(2));
        pusher.join().unwrap();
        let [first, second] = taker.join().unwrap();
        let outcome = (first.len(), second.len());
        assert_all_once(3, [first, second, run_all(injector.take_all())]);
        assert!(injector.is_empty());
        outcome
    });
    let expected = [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)];
    assert!(expected.iter().all(|outcome| taken.contains(outcome)), "{taken:?}");
}

/// Catches: `Injector::take_all` that doesn't reverse the chain.
#[test]
fn pushes_of_one_thread_stay_in_order() {
    let taken = explore(|| {
        let injector = Arc::new(Injector::new());
        let taker = thread::spawn({
            let injector = injector.clone();
            move || run_all(injector.take_all())
        });

        (0..3).for_each(|id| injector.push(task(id)));
        let early = taker.join().unwrap();
        let all = [early.clone(), run_all(injector.take_all())].concat();
        assert_eq!(all, [0, 1, 2]);
        early.len()
    });
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

/// A task is taken and pushed again while a pusher still remembers it as the top: the ABA case that
/// the module page calls harmless. Catches: `Injector::push` with a relaxed compare-exchange.
#[test]
fn a_top_that_comes_back_is_harmless() {
    explore(|| {
        let injector = Arc::new(Injector::new());
        injector.push(task(0));
        let taker = thread::spawn({
            let injector = injector.clone();
            move || {
                let mut taken = injector.take_all();
                let again = taken.next().expect("pushed before");
                let early = run_all(taken);
                injector.push(task(2));
                let between = run_all(injector.take_all());
                injector.push(again);
                [early, between]
            }
        });

        injector.push(task(1));
        let [early, between] = taker.join().unwrap();
        assert_all_once(3, [early, between, run_all(injector.take_all())]);
    });
}
