//! A coroutine that is dropped before its end.

use crate::harness::{ALL, coroutine, in_each, moved, on_thread};
use gosched_fiber::{Coroutine, suspend};
use std::sync::Arc;

struct Held(#[expect(dead_code, reason = "held, not used")] Arc<()>);

/// Neither unwound nor freed: what it holds stays as it is for ever.
#[test]
fn a_suspended_one_leaks_what_it_holds() {
    in_each(ALL, "dropped::a_suspended_one_leaks_what_it_holds", |_| {
        let value = Arc::new(());
        for i in 1..=20 {
            let held = Held(value.clone());
            let mut c = coroutine(move || {
                let held = held;
                suspend();
                drop(held);
            });
            assert!(!c.resume());
            on_thread(move || drop(c));
            assert_eq!(Arc::strong_count(&value), 1 + i);
            // Nobody gets its stack or block.
            moved(|| ());
        }
    });
}

#[test]
fn one_that_never_started_drops_its_function_and_gives_its_fiber_back() {
    in_each(
        ALL,
        "dropped::one_that_never_started_drops_its_function_and_gives_its_fiber_back",
        |mode| {
            let value = Arc::new(());
            // One after another: with the fiber given back they all use one.
            for _ in 0..20 {
                let held = Held(value.clone());
                let c = coroutine(move || drop(held));
                drop(c);
            }
            let is_thread = format!("{mode:?}").contains("Threads");
            while is_thread && Arc::strong_count(&value) > 1 {
                std::thread::yield_now(); // the thread has to be told
            }
            assert_eq!(Arc::strong_count(&value), 1);
            if !is_thread {
                assert_eq!(gosched_fiber::pool::idle_count(), 1);
            }
        },
    );
}

#[test]
fn one_that_ended_or_panicked_leaves_nothing() {
    in_each(ALL, "dropped::one_that_ended_or_panicked_leaves_nothing", |_| {
        let value = Arc::new(());
        let held = Held(value.clone());
        let mut c = coroutine(move || {
            let _held = held;
            panic!("on purpose");
        });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| c.resume()));
        assert!(caught.is_err());
        drop(c);
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// Kept from being misused by safe code.
#[test]
fn a_carrier_is_made_once_and_not_in_a_coroutine() {
    in_each(
        crate::harness::BLOCKS,
        "dropped::a_carrier_is_made_once_and_not_in_a_coroutine",
        |_| {
            let carrier = gosched_fiber::Carrier::new();
            assert!(std::panic::catch_unwind(gosched_fiber::Carrier::new).is_err());
            let mut c: Coroutine = coroutine(|| {
                assert!(std::panic::catch_unwind(gosched_fiber::Carrier::new).is_err());
            });
            assert!(c.resume());
            drop(carrier);
            drop(gosched_fiber::Carrier::new());
            assert!(std::panic::catch_unwind(suspend).is_err());
        },
    );
}
