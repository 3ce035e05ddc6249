//! Blocking calls, declared and not, beside goroutines that must get on.

use gosched::{blocking, go, run, runtime, thread};
use std::time::Duration;

/// Runs `block` in 50 goroutines beside one that counts how often it wakes.
fn beside_a_ticker(block: fn()) {
    run(move || {
        let before = runtime::counters();
        let ticker = go(|| {
            let mut ticks = 0;
            while ticks < 20 {
                thread::sleep(Duration::from_millis(1));
                ticks += 1;
            }
        });
        let blocked: Vec<_> = (0..50).map(|_| go(block)).collect();
        ticker.join().unwrap();
        blocked.into_iter().for_each(|b| b.join().unwrap());
        let after = runtime::counters();
        let offs = after.declared_hand_offs + after.undeclared_hand_offs
            - before.declared_hand_offs
            - before.undeclared_hand_offs;
        assert!(offs > 10, "{offs} hand-offs");
    });
}

#[test]
fn declared() {
    beside_a_ticker(|| blocking(|| std::thread::sleep(Duration::from_millis(50))));
}

#[test]
fn undeclared() {
    beside_a_ticker(|| std::thread::sleep(Duration::from_millis(50)));
}

#[test]
fn a_call_that_uses_the_runtime_inside() {
    run(|| {
        let value = blocking(|| {
            thread::sleep(Duration::from_millis(2));
            go(|| 7).join().unwrap()
        });
        assert_eq!(value, 7);
    });
}
