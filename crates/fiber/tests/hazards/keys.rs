//! pthread keys: values and destructors, of the first 32 keys and of later ones.

use crate::harness::{ALL, coroutine, in_each, moved};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

type Destructor = extern "C" fn(*mut c_void);

fn new_key(destructor: Option<Destructor>) -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: the destructor has the right type and touches nothing but statics.
    let plain: Option<unsafe extern "C" fn(*mut c_void)> = destructor.map(|d| d as _);
    // SAFETY: writes the key, which is ours.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, plain) }, 0);
    key
}

fn set(key: libc::pthread_key_t, value: usize) {
    // SAFETY: the key exists; the value is never followed.
    assert_eq!(unsafe { libc::pthread_setspecific(key, value as *const c_void) }, 0);
}

fn get(key: libc::pthread_key_t) -> usize {
    // SAFETY: the key exists.
    unsafe { libc::pthread_getspecific(key) as usize }
}

/// A key among the first 32 and one above them, with the same destructor.
fn low_and_high(destructor: Option<Destructor>) -> [libc::pthread_key_t; 2] {
    let low = new_key(destructor);
    assert!(low < 32, "the process has used up the first 32 keys: {low}");
    let between: Vec<_> = (0..40).map(|_| new_key(None)).collect();
    let high = new_key(destructor);
    assert!(high >= 32);
    for key in between {
        // SAFETY: the key exists and is not used again.
        unsafe { libc::pthread_key_delete(key) };
    }
    [low, high]
}

#[test]
fn destructors_run_once_with_their_values() {
    static SUM: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn add(value: *mut c_void) {
        SUM.fetch_add(value as usize, SeqCst);
    }
    in_each(ALL, "keys::destructors_run_once_with_their_values", |_| {
        let [low, high] = low_and_high(Some(add));
        moved(move || {
            assert_eq!((get(low), get(high)), (0, 0));
            set(low, 3);
            set(high, 500);
            assert_eq!((get(low), get(high)), (3, 500));
            assert_eq!(SUM.load(SeqCst), 0);
        });
        assert_eq!(SUM.load(SeqCst), 503);
    });
}

#[test]
fn a_destructor_that_sets_its_key_again_runs_four_times() {
    static KEYS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
    static RUNS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    extern "C" fn again(value: *mut c_void) {
        let which = value as usize - 1;
        RUNS[which].fetch_add(1, SeqCst);
        set(KEYS[which].load(SeqCst), which + 1);
    }
    in_each(ALL, "keys::a_destructor_that_sets_its_key_again_runs_four_times", |_| {
        let [low, high] = low_and_high(Some(again));
        KEYS[0].store(low, SeqCst);
        KEYS[1].store(high, SeqCst);
        moved(move || {
            set(low, 1);
            set(high, 2);
        });
        assert_eq!(RUNS[0].load(SeqCst), 4, "a key below 32");
        assert_eq!(RUNS[1].load(SeqCst), 4, "a key above 32");
        // What four rounds left is not the next one's.
        for _ in 0..4 {
            moved(move || assert_eq!((get(low), get(high)), (0, 0)));
        }
        assert_eq!(RUNS[0].load(SeqCst), 4, "ran for a coroutine that set nothing");
    });
}

#[test]
fn a_deleted_key_has_no_destructor() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn count(_: *mut c_void) {
        RUNS.fetch_add(1, SeqCst);
    }
    in_each(ALL, "keys::a_deleted_key_has_no_destructor", |_| {
        let [low, high] = low_and_high(Some(count));
        moved(move || {
            for key in [low, high] {
                set(key, 1);
                // SAFETY: the key exists and is not used again.
                assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
            }
        });
        assert_eq!(RUNS.load(SeqCst), 0);
    });
}

/// A key's destructor may use a thread-local that was not used before, whose own destructor must
/// then run, and only once, although libc runs it before those of keys.
#[test]
fn a_thread_local_first_used_by_a_keys_destructor_is_dropped_once() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static LATE: Counted = { MADE.fetch_add(1, SeqCst); Counted };
    }
    extern "C" fn touch(_: *mut c_void) {
        LATE.with(|_| ());
    }
    in_each(
        crate::harness::BLOCKS,
        "keys::a_thread_local_first_used_by_a_keys_destructor_is_dropped_once",
        |_| {
            let [low, _] = low_and_high(Some(touch));
            for i in 1..=10 {
                let mut c = coroutine(move || set(low, 1));
                assert!(c.resume());
                assert_eq!((MADE.load(SeqCst), DROPS.load(SeqCst)), (i, i));
            }
        },
    );
}
