//! A collection: whatever is idle beyond the reserve is given back at once.

use super::helper::Helper;
use super::{IDLE, RESERVE, give, ring, start};
use crate::stack::{self, Class};
use crate::tls::{self, Kind};
use gosched_base::os::{futex_wait, futex_wake};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// Collections that were asked for, and the number of the last one that is done.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// Gives everything back that idle fibers hold: the fibers themselves but for the reserve of the
/// default class, and the pages of all stacks in which nothing is kept. Waits until the helper has
/// done it: not inside the runtime.
///
/// # Panics
/// If the helper thread can't be created.
pub fn collect() {
    start();
    // ORDERING: Release pairs with the Acquire in `collect_if_asked`: what the caller gave to the
    // pool before is seen.
    let mine = ASKED.fetch_add(1, Release).wrapping_add(1);
    ring();
    loop {
        // ORDERING: Acquire pairs with the Release in `collect_if_asked`.
        let done = DONE.load(Acquire);
        if done.wrapping_sub(mine) <= u32::MAX / 2 {
            return;
        }
        let _ = futex_wait(&DONE, done, None);
    }
}

impl Helper {
    /// Serves those who wait in [`collect`].
    pub(super) fn collect_if_asked(&mut self) {
        // ORDERING: Acquire pairs with `collect`; Relaxed, since only this thread writes it.
        let asked = ASKED.load(Acquire);
        if asked == DONE.load(Relaxed) {
            return;
        }
        for class in Class::all() {
            self.collect(class);
        }
        // ORDERING: Release pairs with `collect`.
        DONE.store(asked, Release);
        futex_wake(&DONE, i32::MAX as u32);
    }

    fn collect(&mut self, class: Class) {
        let idle = &IDLE[class.index()];
        if tls::kind() != Kind::DeadThread {
            let kept = if class == Class::DEFAULT { RESERVE } else { 0 };
            let surplus = idle.lock().count().saturating_sub(kept);
            self.destroy_idle(class, surplus);
        }
        let mut rest = idle.lock().pop_many(usize::MAX);
        while let Some(fiber) = rest.pop() {
            // SAFETY: it was idle, and is in nobody's list.
            unsafe { fiber.release_pages() };
            // SAFETY: as above; idle fibers are renewed.
            unsafe { give(fiber) };
        }
        stack::trim(class, 0);
    }
}
