//! `syscall_overhead`: a system call that never blocks, declared and not.

use super::Outcome;
use crate::args::Args;
use crate::report::{Report, ns_per};
use gosched::blocking;
use std::time::Instant;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(2_000_000)?;
    let pid = std::process::id();
    let start = Instant::now();
    (0..n).for_each(|_| assert_eq!(blocking(getpid), pid));
    let took = start.elapsed();
    let start = Instant::now();
    (0..n).for_each(|_| assert_eq!(getpid(), pid));
    let raw = start.elapsed();
    Ok(Report::new(args, n)
        .time(took, n)
        .set("raw_ns_per_op", ns_per(raw, n))
        .set("via", "blocking(getpid); raw_*: getpid"))
}

/// glibc keeps no copy of it.
fn getpid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::getpid() as u32 }
}
