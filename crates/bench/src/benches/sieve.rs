//! `sieve`: the first primes through a chain of filters, each a task.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::spawn;
use gosched::channel::bounded;
use std::mem;
use std::time::Instant;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(2_000)?;
    let (last, transfers) = truth(n);
    let cap = args.get("cap", 0)?;
    let start = Instant::now();
    let (sender, mut numbers) = bounded(cap);
    spawn(move || (2..).all(|i: u64| sender.send(i).is_ok()));
    let mut prime = 0;
    for _ in 0..n {
        prime = numbers.recv().expect("there are more");
        let (sender, filtered) = bounded(cap);
        let input = mem::replace(&mut numbers, filtered);
        spawn(move || {
            for i in input {
                if i % prime != 0 && sender.send(i).is_err() {
                    return;
                }
            }
        });
    }
    let took = start.elapsed();
    assert_eq!(prime, last);
    let report = Report::new(args, n).time(took, transfers).set("last_prime", prime);
    Ok(report.set("channel", format!("gosched cap {cap}")))
}

/// The n-th prime, and how many numbers pass from task to task until it is found.
fn truth(n: u64) -> (u64, u64) {
    let mut primes: Vec<u64> = Vec::new();
    let (mut transfers, mut i) = (0, 1);
    while (primes.len() as u64) < n {
        i += 1;
        match primes.iter().position(|prime| i % prime == 0) {
            Some(place) => transfers += place as u64 + 1,
            None => {
                primes.push(i);
                transfers += primes.len() as u64;
            }
        }
    }
    (*primes.last().expect("n is not 0"), transfers)
}
