//! `select4`: one task selects over four channels, each fed by a task of its own.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use gosched::channel::{Receiver, bounded, never};
use gosched::select;
use std::time::Instant;

const FEEDERS: u64 = 4;

pub(crate) fn run(args: &Args) -> Outcome {
    let each = args.n(1_000_000)?.div_ceil(FEEDERS);
    let n = FEEDERS * each;
    let cap = args.get("cap", 0)?;
    let start = Instant::now();
    let feed = |p: u64| {
        let (sender, receiver) = bounded(cap);
        spawn(move || {
            for i in 0..each {
                sender.send(p * each + i).expect("the selector receives");
            }
        });
        receiver
    };
    let channels = [feed(0), feed(1), feed(2), feed(3)];
    let selector = spawn(move || select_all(channels));
    assert_eq!(join(selector), (n * (n - 1) / 2, n));
    Ok(Report::new(args, n).time(start.elapsed(), n).set("channel", format!("gosched cap {cap}")))
}

/// Sum and count of what comes, until all four are closed.
fn select_all([mut a, mut b, mut c, mut d]: [Receiver<u64>; 4]) -> (u64, u64) {
    let (mut sum, mut count, mut open) = (0, 0, FEEDERS);
    while open > 0 {
        let (number, from) = select! {
            recv(a) -> number => (number, &mut a),
            recv(b) -> number => (number, &mut b),
            recv(c) -> number => (number, &mut c),
            recv(d) -> number => (number, &mut d),
        };
        match number {
            Ok(number) => {
                sum += number;
                count += 1;
            }
            Err(_) => {
                *from = never();
                open -= 1;
            }
        }
    }
    (sum, count)
}
