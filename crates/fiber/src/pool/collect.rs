//! A collection: whatever is idle beyond the reserve is given back at once.

use super::helper::Helper;
use super::{IDLE, RESERVE, give, has_helper, is_waiting, ring, start};
use crate::stack::{self, Class};
use crate::tls::{self, Kind};
use gosched_base::os::{futex_wait, futex_wake};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Collections that were asked for, and the number of the last one that is done.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// The next collection leaves nothing beyond the reserve.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// How many idle fibers of each class another one leaves; see [`collect_surplus`].
static KEPT: [AtomicUsize; Class::COUNT] = [const { AtomicUsize::new(0) }; Class::COUNT];
/// So many fibers that were in use a moment ago make a program busy.
const BUSY: usize = 2 * RESERVE;
/// Fibers whose pages are given back between two looks for requests.
const AT_ONCE: usize = 64;

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
/// [`surplus`]. While all are busy it does not wait for the others to go, which they do step by step.
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
    // ORDERING: Release pairs with `collect_if_asked`: the collection that takes it sees what the
    // caller gave to the pool before.
    IS_FULL.store(true, Release);
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
        // ORDERING: Acquire pairs with `collect`.
        let is_full = IS_FULL.swap(false, Acquire);
        for class in Class::all() {
            // ORDERING: Relaxed; came with the request.
            let kept = if is_full { 0 } else { KEPT[class.index()].load(Relaxed) };
            self.collect_class(class, kept.max(reserve(class)), is_full || is_waiting());
        }
        // ORDERING: Release pairs with `collect`.
        DONE.store(asked, Release);
        futex_wake(&DONE, i32::MAX as u32);
    }

    /// Leaves `kept` idle fibers: now, or step by step.
    pub(super) fn collect_class(&mut self, class: Class, kept: usize, at_once: bool) {
        let has_blocks = tls::kind() != Kind::DeadThread;
        if !at_once {
            // With their pages, which will be wanted soon.
            if has_blocks {
                self.let_stay(class, kept);
            }
            return;
        }
        if has_blocks {
            let surplus = IDLE[class.index()].lock().count().saturating_sub(kept);
            self.destroy_idle(class, surplus);
        }
        // Those of a busy program are wanted again at once, with their pages.
        if kept <= BUSY {
            self.release_pages(class);
        }
        stack::trim(class, 0);
    }

    /// Gives back the pages of the idle fibers' stacks, and serves requests on the way, since there
    /// is none idle meanwhile.
    fn release_pages(&mut self, class: Class) {
        let mut rest = IDLE[class.index()].lock().take_all();
        while let Some(fiber) = rest.pop() {
            // SAFETY: it was idle, and is in nobody's list.
            unsafe { fiber.release_pages() };
            // SAFETY: as above; idle fibers are reusable.
            unsafe { give(fiber) };
            if rest.count().is_multiple_of(AT_ONCE) {
                self.serve_requests();
            }
        }
    }
}
