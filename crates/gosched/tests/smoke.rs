//! The first things that must work.

use gosched::{go, run, runtime, thread};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn results_come_back() {
    let sum: usize = run(|| {
        let tasks: Vec<_> = (0..1000).map(|i| go(move || i)).collect();
        tasks.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(sum, 499_500);
}

#[test]
fn from_plain_threads() {
    let tasks: Vec<_> = (0..1000).map(|i| go(move || i)).collect();
    let sum: usize = tasks.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(sum, 499_500);
}

#[test]
fn yields_and_sleeps() {
    static N: AtomicUsize = AtomicUsize::new(0);
    run(|| {
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                go(|| {
                    for _ in 0..100 {
                        thread::yield_now();
                    }
                    thread::sleep(Duration::from_millis(2));
                    runtime::gosched();
                    N.fetch_add(1, SeqCst);
                })
            })
            .collect();
        tasks.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(N.load(SeqCst), 100);
}

#[test]
fn scopes_borrow() {
    let mut v = vec![0; 64];
    thread::scope(|s| {
        for (i, x) in v.iter_mut().enumerate() {
            s.spawn(move || *x = i);
        }
    });
    assert!(v.iter().enumerate().all(|(i, x)| i == *x));
}

#[test]
fn parks_and_times_out() {
    run(|| {
        let t = go(|| {
            thread::park();
            thread::park_timeout(Duration::from_millis(2));
            7
        });
        thread::sleep(Duration::from_millis(1));
        t.thread().unpark();
        assert_eq!(t.join().unwrap(), 7);
    });
}

#[test]
fn a_panic_is_delivered_by_join() {
    let e = go(|| -> u32 { panic!("no") }).join().unwrap_err();
    assert_eq!(*e.downcast_ref::<&str>().unwrap(), "no");
}
