//! Threads that help the helper while many wait.
//!
//! Most of what a fiber costs is the kernel's clearing of its two pages (3 of 5 us), which other
//! CPUs can do as well. They sleep otherwise, and are started when first needed.

use super::serve::{Served, serve};
use super::{STACK_BYTES, refusal, ring};
use crate::signals;
use crate::stack::Class;
use crate::thread::{self, Body};
use gosched_base::Parker;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

/// More would wait for each other in the kernel.
const MAX: usize = 3;
/// Requests for each maker that is called.
const SHARE: usize = 256;

struct Maker {
    name: &'static CStr,
    parker: Parker,
    started: Once,
}

impl Maker {
    const fn new(name: &'static CStr) -> Maker {
        Maker { name, parker: Parker::new(), started: Once::new() }
    }
}

static MAKERS: [Maker; MAX] =
    [Maker::new(c"gosched-maker0"), Maker::new(c"gosched-maker1"), Maker::new(c"gosched-maker2")];
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
    for maker in &MAKERS[..most] {
        maker.started.call_once(|| start(maker));
        maker.parker.wake();
    }
}

fn start(maker: &'static Maker) {
    // ORDERING: Relaxed; see `count`. Counted first, so that nobody sees a stranger.
    COUNT.fetch_add(1, Relaxed);
    if thread::start(maker, Some(STACK_BYTES)).is_err() {
        // Without it the helper does the work alone.
        COUNT.fetch_sub(1, Relaxed);
    }
}

impl Body for Maker {
    fn run(&'static self) {
        thread::set_name(self.name);
        signals::block_for_good();
        loop {
            let worst = Class::all().map(|class| serve(class, refusal::make, false)).max();
            if worst > Some(Served::All) {
                // The helper's, who tries again later (I4 of `pool`).
                ring();
            }
            self.parker.sleep();
        }
    }
}
