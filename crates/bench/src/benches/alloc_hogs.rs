//! `alloc_hogs`: tasks that allocate and free without end; how evenly they share the CPU.
//!
//! A task stopped in the allocator could hold its lock, so it is not; that must starve nobody.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::Sorted;
use crate::tasks::{join_all, spawn};
use gosched::thread::sleep;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(200)?;
    let window = args.secs("secs", 10.0)?;
    let over = Arc::new(AtomicBool::new(false));
    let before = gosched::runtime::preemptions();
    let hogs: Vec<_> = (0..n)
        .map(|_| {
            let over = over.clone();
            spawn(move || allocate_until(&over))
        })
        .collect();
    sleep(window);
    // ORDERING: Relaxed; there is nothing else to see.
    over.store(true, Relaxed);
    let work = Sorted::new(join_all(hogs));
    let after = gosched::runtime::preemptions();
    Ok(Report::new(args, n)
        .secs(window)
        .set("work_min", work.at(f64::MIN_POSITIVE))
        .set("work_p50", work.at(0.5))
        .set("work_max", work.at(1.0))
        .set("min_to_median", work.at(f64::MIN_POSITIVE) / work.at(0.5))
        .set("preemptions", after.in_place - before.in_place)
        .set("deferred_in_libc", after.in_libc - before.in_libc))
}

/// Allocates, fills and frees; how often.
fn allocate_until(over: &AtomicBool) -> u64 {
    let (mut count, mut blocks) = (0_u64, Vec::new());
    // ORDERING: Relaxed; there is nothing else to see.
    while !over.load(Relaxed) {
        blocks.push(black_box(vec![count as u8; 1 + (count * 37 % 2_000) as usize]));
        if blocks.len() > 32 {
            let block = blocks.swap_remove((count % 32) as usize);
            assert!(block.first() == block.last());
        }
        count += 1;
    }
    count
}
