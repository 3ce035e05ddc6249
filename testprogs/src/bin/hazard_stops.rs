//! The world is stopped again and again with 10,000 goroutines waiting, and two that compute and
//! allocate. Prints `key=value` lines.

use gosched::{go, run, runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const WAITING: usize = 10_000;
const STOPS: usize = 200;

fn main() {
    run(|| {
        let (over, chunks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let waiting: Vec<_> = (0..WAITING).map(|_| go(thread::park)).collect();
        let hogs: Vec<_> = (0..2)
            .map(|_| {
                let (over, chunks) = (over.clone(), chunks.clone());
                go(move || {
                    while !over.load(Relaxed) {
                        let numbers: Vec<u64> = (0..5_000).collect();
                        assert_eq!(numbers.iter().sum::<u64>(), 12_497_500);
                        chunks.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        while chunks.load(Relaxed) < 100 {
            thread::yield_now();
        }
        // Each of the following changes the number, wherever this begins.
        runtime::gomaxprocs(2);
        let before = runtime::world_stops().count;
        for i in 0..STOPS {
            runtime::gomaxprocs(1 + i % 2);
            thread::yield_now();
        }
        println!("stops={}", runtime::world_stops().count - before);
        over.store(true, Relaxed);
        hogs.into_iter().for_each(|hog| hog.join().expect("no panic"));
        waiting.iter().for_each(|g| g.thread().unpark());
        let ended = waiting.into_iter().filter_map(|g| g.join().ok()).count();
        println!("ended={ended}");
        println!("chunks={}", chunks.load(Relaxed));
    });
}
