//! Coroutines on fibers with blocks of their own: the first things that must hold.

use gosched_fiber::{Coroutine, suspend, tls};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn init() {
    tls::init(None, None);
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(7) };
}

/// Resumes `c` from a new thread each time until it ends.
fn drive(mut c: Coroutine) -> usize {
    let mut resumes = 1;
    loop {
        let (back, ended) = std::thread::spawn(move || {
            let ended = c.resume();
            (c, ended)
        })
        .join()
        .unwrap();
        if ended {
            return resumes;
        }
        c = back;
        resumes += 1;
    }
}

#[test]
fn the_template_is_understood_here() {
    init();
    assert_eq!(tls::report().defect, None, "{:?}", tls::report());
    assert!(tls::report().through_gs);
    assert!(tls::report().key_destructors);
    assert!(tls::report().malloc_cache);
    assert_eq!(tls::report().untouched, 4);
    assert!(tls::report().setxid_wrapped);
}

#[test]
fn thread_locals_follow_the_coroutine() {
    init();
    let c = Coroutine::new(|| {
        let id = std::thread::current().id();
        for i in 0..10 {
            assert_eq!(NUMBER.get(), 7 + i);
            NUMBER.set(8 + i);
            suspend();
            assert_eq!(std::thread::current().id(), id);
        }
    })
    .unwrap();
    assert_eq!(drive(c), 11);
    assert_eq!(NUMBER.get(), 7);
}

#[test]
fn a_reused_block_is_fresh_and_destructors_run_once() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static DROPPED: Counted = const { Counted };
    }
    init();
    for i in 0..100 {
        let mut c = Coroutine::new(|| {
            assert_eq!(NUMBER.get(), 7);
            NUMBER.set(1);
            DROPPED.with(|_| ());
        })
        .unwrap();
        assert!(c.resume());
        assert_eq!(DROPS.load(SeqCst), i + 1);
    }
}

#[test]
fn a_panic_reaches_the_resumer() {
    init();
    let mut c = Coroutine::new(|| {
        suspend();
        panic!("from the coroutine");
    })
    .unwrap();
    assert!(!c.resume());
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| c.resume()));
    assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"from the coroutine"));
}

#[test]
fn a_backtrace_ends_in_the_first_frame() {
    init();
    let mut c = Coroutine::new(|| {
        let trace = std::backtrace::Backtrace::force_capture().to_string();
        assert!(trace.contains("first_frame") || trace.contains("coroutine::entry"), "{trace}");
        assert!(!trace.contains("resume"), "{trace}");
    })
    .unwrap();
    assert!(c.resume());
}
