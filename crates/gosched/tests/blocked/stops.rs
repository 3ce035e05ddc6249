//! Stopping the world beside much traffic.

use gosched::{go, run, runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn thousands_go_on_through_many_stops() {
    run(|| {
        let over = Arc::new(AtomicBool::new(false));
        let before = runtime::world_stops();
        let pairs: Vec<_> = (0..5_000).map(|_| pair(over.clone())).collect();
        for i in 0..30 {
            runtime::gomaxprocs(1 + i % 4);
            thread::yield_now();
        }
        over.store(true, SeqCst);
        let trips: u64 = pairs.into_iter().map(|pair| pair.join().unwrap()).sum();
        assert!(trips > 0);
        let after = runtime::world_stops();
        assert!(after.count >= before.count + 20);
        assert!(after.longest >= after.p99);
    });
}

/// Two goroutines that wake each other in turn; how often they did.
fn pair(over: Arc<AtomicBool>) -> thread::JoinHandle<u64> {
    go(move || {
        let first = thread::current();
        let done = over.clone();
        let second = go(move || {
            while !done.load(SeqCst) {
                first.unpark();
                thread::park_timeout(std::time::Duration::from_millis(50));
            }
            first.unpark();
        });
        let mut trips = 0;
        while !over.load(SeqCst) {
            second.thread().unpark();
            thread::park_timeout(std::time::Duration::from_millis(50));
            trips += 1;
        }
        second.thread().unpark();
        second.join().unwrap();
        trips
    })
}
