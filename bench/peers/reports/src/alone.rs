//! Cases that only one peer has.

use crate::system;
use corosensei::{Coroutine, CoroutineResult};
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// A millisecond's worth.
pub fn some_work() -> u64 {
    (0..1_000_000).fold(0, |sum, n| black_box(sum ^ n))
}

/// A job waits for its halves while it holds a lock that other jobs take.
pub fn rayon_lock() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("it starts");
    let lock = Mutex::new(0_u64);
    pool.scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|_| {
                let mut count = lock.lock().expect("no panic");
                let (a, b) = rayon::join(some_work, some_work);
                *count += a + b;
            });
        }
    });
}

pub fn corosensei_overflow() {
    let mut coroutine = Coroutine::<(), (), u64>::new(|_, ()| system::recurse(0));
    let _ = coroutine.resume(());
}

/// A coroutine that is dropped while it catches all panics around its waits.
pub fn corosensei_unwind() {
    let mut coroutine = Coroutine::<(), (), ()>::new(|yielder, ()| {
        for _ in 0..3 {
            let _ = catch_unwind(AssertUnwindSafe(|| yielder.suspend(())));
        }
    });
    assert!(matches!(coroutine.resume(()), CoroutineResult::Yield(())));
    drop(coroutine);
}
