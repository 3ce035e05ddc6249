//! `ring`: a token goes round many tasks.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::spawn;
use gosched::channel::{Receiver, Sender, bounded};
use std::mem;
use std::time::Instant;

const SIZE: u64 = 503;

pub(crate) fn run(args: &Args) -> Outcome {
    let hops = args.n(1_000_000)?;
    let cap = args.get("cap", 0)?;
    let (done, last) = bounded(1);
    let (first, mut input) = bounded(cap);
    for id in 0..SIZE {
        let (next, next_input) = bounded(cap);
        let output = if id == SIZE - 1 { first.clone() } else { next };
        let input = mem::replace(&mut input, next_input);
        let done = done.clone();
        spawn(move || {
            if pass_on(&input, &output) {
                done.send(id).expect("the bench waits for it");
            }
        });
    }
    let start = Instant::now();
    first.send(hops).expect("the first task waits for it");
    assert_eq!(last.recv().ok(), Some(hops % SIZE));
    let took = start.elapsed();
    Ok(Report::new(args, hops).time(took, hops).set("channel", format!("gosched cap {cap}")))
}

/// Passes the token on until it ends here (true) or elsewhere.
fn pass_on(input: &Receiver<u64>, output: &Sender<u64>) -> bool {
    while let Ok(left) = input.recv() {
        if left == 0 {
            return true;
        }
        output.send(left - 1).expect("the neighbour waits for it");
    }
    false
}
