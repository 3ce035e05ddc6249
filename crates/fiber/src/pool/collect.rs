//! A collection: whatever is idle beyond the reserve is given back at once.

use super::helper::Helper;
use super::{IDLE, RESERVE, give, has_helper, ring, start};
use crate::stack::{self, Class};
use crate::tls::{self, Kind};
use gosched_base::os::{futex_wait, futex_wake};
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Collections that were asked for, and the number of the last one that is done.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// How many idle fibers of each class a collection leaves; see [`collect_surplus`].
static KEPT: [AtomicUsize; Class::COUNT] = [const { AtomicUsize::new(0) }; Class::COUNT];
/// Fibers that were destroyed.
static GIVEN_BACK: AtomicU64 = AtomicU64::new(0);

/// How many stacks with their blocks were given back since the start.
#[must_use]
pub fn given_back() -> u64 {
    // ORDERING: Relaxed; a statistic.
    GIVEN_BACK.load(Relaxed)
}

pub(super) fn count_given_back(count: usize) {
    // ORDERING: Relaxed; a statistic.
    GIVEN_BACK.fetch_add(count as u64, Relaxed);
}

fn reserve(class: Class) -> usize {
    if class == Class::DEFAULT { RESERVE } else { 0 }
}

/// How many fibers beyond the reserve have been idle ever since the last call, and how many are now.
/// May be called inside the runtime.
pub fn surplus() -> (usize, usize) {
    let mut sum = (0, 0);
    if !has_helper() || tls::kind() == Kind::DeadThread {
        return sum;
    }
    for class in Class::all() {
        let mut idle = IDLE[class.index()].lock();
        let (lowest, count) = (idle.take_lowest(), idle.count());
        drop(idle);
        let surplus = lowest.saturating_sub(reserve(class));
        // ORDERING: Relaxed; a number that steers.
        KEPT[class.index()].store(count - surplus, Relaxed);
        sum = (sum.0 + surplus, sum.1 + count.saturating_sub(reserve(class)));
    }
    sum
}

/// As [`collect`], but leaves the fibers that were not idle all the time before the last
/// [`surplus`].
///
/// # Panics
/// As [`collect`].
pub fn collect_surplus() {
    wait_for_collection();
}

/// Gives everything back that idle fibers hold: the fibers themselves but for the reserve of the
/// default class, and the pages of all stacks in which nothing is kept. Waits until the helper has
/// done it: not inside the runtime.
///
/// # Panics
/// If the helper thread can't be created.
pub fn collect() {
    for class in Class::all() {
        // ORDERING: Relaxed; published by the request.
        KEPT[class.index()].store(0, Relaxed);
    }
    wait_for_collection();
}

fn wait_for_collection() {
    start().expect("gosched: can't create the thread that makes fibers");
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
            // ORDERING: Relaxed; came with the request.
            let kept = KEPT[class.index()].load(Relaxed).max(reserve(class));
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
