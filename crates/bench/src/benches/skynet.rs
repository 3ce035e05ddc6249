//! `skynet`: a tree of tasks with ten children each; sums go up through channels.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::spawn;
use gosched::channel::{Sender, bounded};
use std::time::Instant;

const CHILDREN: u64 = 10;

pub(crate) fn run(args: &Args) -> Outcome {
    let leaves = CHILDREN.pow(args.n(1_000_000)?.ilog(CHILDREN));
    let cap = args.get("cap", 0)?;
    let start = Instant::now();
    let (sum, root) = bounded(cap);
    spawn(move || node(&sum, 0, leaves, cap));
    assert_eq!(root.recv().ok(), Some(leaves * (leaves - 1) / 2));
    let took = start.elapsed();
    let report = Report::new(args, leaves).time(took, leaves);
    Ok(report.set("channel", format!("gosched cap {cap}")))
}

/// Sends the sum of the leaf numbers from `first` on.
fn node(up: &Sender<u64>, first: u64, leaves: u64, cap: usize) {
    if leaves == 1 {
        return up.send(first).expect("the parent waits for it");
    }
    let (sum, sums) = bounded(cap);
    let share = leaves / CHILDREN;
    for child in 0..CHILDREN {
        let sum = sum.clone();
        spawn(move || node(&sum, first + child * share, share, cap));
    }
    let sum = (0..CHILDREN).map(|_| sums.recv().expect("each child sends")).sum();
    up.send(sum).expect("the parent waits for it");
}
