//! Too much parallelism: the sum of a million numbers, by more and more goroutines.
//!
//! A goroutine costs little, not nothing: about as much as a few hundred additions. Look at the
//! times: as many goroutines as processors are fastest, a thousand hardly slower, and one for each
//! number takes many times as long, for work that a single one does at once.
//!
//! `cargo run --release --example parallelism`

use gosched::runtime;
use gosched::thread;
use std::time::{Duration, Instant};

/// What came out.
pub(crate) struct Shown {
    pub(crate) goroutines: usize,
    pub(crate) sum: u64,
    pub(crate) took: Duration,
}

/// The sum, by goroutines that take `chunk` numbers each.
fn sum(numbers: &[u64], chunk: usize) -> Shown {
    let start = Instant::now();
    let (sum, goroutines) = thread::scope(|scope| {
        let parts: Vec<_> = numbers
            .chunks(chunk)
            .map(|part| scope.spawn(move || part.iter().map(|n| n ^ 1).sum::<u64>()))
            .collect();
        let goroutines = parts.len();
        (parts.into_iter().map(|part| part.join().expect("it only adds")).sum(), goroutines)
    });
    Shown { goroutines, sum, took: start.elapsed() }
}

/// One goroutine, as many as processors, some more, and one for each number.
pub(crate) fn demo(count: usize) -> [Shown; 4] {
    let numbers: Vec<u64> = (0..count as u64).collect();
    let procs = runtime::gomaxprocs(0);
    [count, count.div_ceil(procs), (count / 1000).max(1), 1].map(|chunk| sum(&numbers, chunk))
}

#[gosched::main]
fn main() {
    for Shown { goroutines, sum, took } in demo(1_000_000) {
        println!("{goroutines:>9} goroutines: {took:>10.1?}, sum {sum}");
    }
}
