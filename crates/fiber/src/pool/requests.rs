//! How many fibers are asked for, and whether the helper knows.
//!
//! While processors are busy the helper looks by itself, each [`PACE`](super::helper), and who asks
//! rings no bell. So who asks and the helper that finds nothing and goes to sleep must not miss each
//! other:
//!
//! * Who asks: A1 one more is wanted; A2 a fence; A3 is the helper paced? if not, ring.
//! * Helper: H1 it is not paced; H2 a fence; H3 is anything wanted? if not, sleep until the bell.
//!
//! If H2 comes before A2, A3 sees H1 and rings; else H3 sees A1. The model is `tests/loom_pool.rs`.

use super::rt::{AtomicBool, AtomicUsize, const_unless_modelled, fence, zeros};
use crate::stack::Class;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

pub(super) struct Requests {
    /// How many fibers of each class somebody waits for.
    wanted: [AtomicUsize; Class::COUNT],
    /// Whether the helper looks again soon without a bell.
    is_paced: AtomicBool,
}

impl Requests {
    const_unless_modelled! {
        pub(super) fn new() -> Requests {
            Requests { wanted: zeros!(Class::COUNT), is_paced: AtomicBool::new(false) }
        }
    }

    /// One more is wanted. True: the helper is to be rung for.
    pub(super) fn add(&self, class: Class) -> bool {
        // ORDERING: A1; Release pairs with the Acquire in `wanted`.
        self.wanted[class.index()].fetch_add(1, Release);
        // ORDERING: A2, which pairs with H2.
        fence(SeqCst);
        // ORDERING: A3; the fence orders it.
        !self.is_paced.load(Relaxed)
    }

    /// Those who ask have nothing else to do any more. True: the helper is to be rung for, who would
    /// wait for its time.
    pub(super) fn hurry(&self) -> bool {
        // ORDERING: Relaxed; a helper that sets it at this moment looks again soon.
        self.is_paced.load(Relaxed) && self.is_paced.swap(false, Relaxed)
    }

    /// The helper is about to look at what is wanted.
    pub(super) fn begin_look(&self) {
        // ORDERING: H1; the fence orders it.
        self.is_paced.store(false, Relaxed);
        // ORDERING: H2, which pairs with A2.
        fence(SeqCst);
    }

    /// The helper has left some for its next look, which comes soon.
    pub(super) fn leave_for_later(&self) {
        // ORDERING: Relaxed; who sees it late rings for nothing.
        self.is_paced.store(true, Relaxed);
    }

    pub(super) fn wanted(&self, class: Class) -> usize {
        // ORDERING: H3; Acquire pairs with `add`: what the hook needs of who asked is there.
        self.wanted[class.index()].load(Acquire)
    }

    /// Takes up to `most` requests upon the caller, who answers for them.
    pub(super) fn claim(&self, class: Class, most: usize) -> usize {
        // ORDERING: Acquire pairs with `add`, as in `wanted`.
        let claimed = self.wanted[class.index()].fetch_update(Acquire, Relaxed, |wanted| {
            (wanted > 0).then(|| wanted - wanted.min(most))
        });
        claimed.map_or(0, |wanted| wanted.min(most))
    }

    /// Gives `count` claimed requests back unanswered.
    pub(super) fn unclaim(&self, class: Class, count: usize) {
        // ORDERING: Release pairs with the Acquire in `wanted`, as in `add`.
        self.wanted[class.index()].fetch_add(count, Release);
    }
}
