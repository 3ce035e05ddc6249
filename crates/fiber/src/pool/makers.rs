//! Threads that help the helper while many wait.
//!
//! Most of what a fiber costs is the kernel's clearing of its two pages (3 of 5 us), which other
//! CPUs can do as well. They sleep otherwise, and are started when first needed.

use super::serve::{Served, serve};
use super::{refusal, ring};
use crate::signals;
use crate::stack::Class;
use gosched_base::Parker;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

/// More would wait for each other in the kernel.
const MAX: usize = 3;
/// Requests for each maker that is called.
const SHARE: usize = 256;

static PARKERS: [Parker; MAX] = [const { Parker::new() }; MAX];
static STARTED: [Once; MAX] = [const { Once::new() }; MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many there are.
pub(super) fn count() -> usize {
    // ORDERING: Relaxed; read when all is quiet.
    COUNT.load(Relaxed)
}

/// Wakes so many makers as `waiting` requests are worth; all but one CPU at most. Only on the
/// helper's thread and on theirs, since it may start them.
pub(super) fn call(waiting: usize) {
    // Asked once: it reads files.
    static CPUS: OnceLock<usize> = OnceLock::new();
    let ask = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = (CPUS.get_or_init(ask) - 1).min(MAX).min(waiting / SHARE);
    for i in 0..most {
        STARTED[i].call_once(|| start(i));
        PARKERS[i].wake();
    }
}

fn start(i: usize) {
    let thread = std::thread::Builder::new().name(format!("gosched-maker{i}"));
    let help = move || {
        signals::block_for_good();
        loop {
            let worst = Class::all().map(|class| serve(class, refusal::make, false)).max();
            if worst > Some(Served::All) {
                // The helper's, who tries again later (I4 of `pool`).
                ring();
            }
            PARKERS[i].sleep();
        }
    };
    // ORDERING: Relaxed; see `count`. Counted first, so that nobody sees a stranger.
    COUNT.fetch_add(1, Relaxed);
    if thread.spawn(help).is_err() {
        // Without it the helper does the work alone.
        COUNT.fetch_sub(1, Relaxed);
    }
}
