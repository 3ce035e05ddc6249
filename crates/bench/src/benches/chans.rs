//! `chan_spsc` and `chan_mpmc`: numbers through one buffered channel.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use gosched::channel::bounded;
use std::time::Instant;

/// With so many producers, and as many consumers.
pub(crate) fn run(args: &Args, pairs: u64) -> Outcome {
    let each = args.n(5_000_000)?.div_ceil(pairs);
    let n = each * pairs;
    let cap = args.get("cap", 128)?;
    let (sender, receiver) = bounded(cap);
    let start = Instant::now();
    for p in 0..pairs {
        let sender = sender.clone();
        spawn(move || {
            for i in 0..each {
                sender.send(p * each + i).expect("somebody receives");
            }
        });
    }
    drop(sender);
    let consumers: Vec<_> = (0..pairs)
        .map(|_| {
            let receiver = receiver.clone();
            spawn(move || receiver.iter().sum::<u64>())
        })
        .collect();
    let sum: u64 = join_all(consumers).into_iter().sum();
    assert_eq!(sum, n * (n - 1) / 2);
    Ok(Report::new(args, n).time(start.elapsed(), n).set("channel", format!("gosched cap {cap}")))
}
