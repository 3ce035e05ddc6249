//! Tests of the limiter.

use super::Limiter;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

static THREE: Limiter = Limiter::new(3);
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn call() {
    THREE.run(|| {
        MOST.fetch_max(NOW.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        // The first ones wait for as many as there may be.
        while MOST.load(SeqCst) < 3 {
            std::thread::sleep(Duration::from_millis(2));
        }
        NOW.fetch_sub(1, SeqCst);
    });
}

/// Goroutines and plain threads share the bound; all get through, also after a panic.
#[test]
fn no_more_than_that_run_at_a_time() {
    let plain: Vec<_> =
        (0..8).map(|_| std::thread::spawn(|| (0..4).for_each(|_| call()))).collect();
    crate::run(|| {
        let panics = crate::current::is_goroutine()
            && std::panic::catch_unwind(|| THREE.run(|| panic!("in the call"))).is_err();
        assert!(panics);
        let all: Vec<_> = (0..40).map(|_| go(call)).collect();
        all.into_iter().for_each(|g| g.join().unwrap());
    });
    plain.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(MOST.load(SeqCst), 3);
    assert_eq!(THREE.synced.lock().free, 3);
}

#[test]
#[should_panic = "no call could ever run"]
fn none_at_all_is_a_mistake() {
    let _ = Limiter::new(0);
}

#[track_caller]
fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> crate::JoinHandle<T> {
    let site = std::panic::Location::caller();
    // SAFETY: all is Send and 'static.
    unsafe { crate::spawn(f, crate::SpawnOptions::default(), site) }.unwrap()
}
