//! Stacks that are made ready together, for one who needs many.
//!
//! One by one, a stack with two pages costs two calls to the kernel, which are a quarter of it (4.7 us
//! against 3.5), and each wants the lock of the process's mappings. Here guards and pages of many are
//! asked for in one call each.
//!
//! Invariants
//! * I1. The slots are the holder's, in the state that is noted, until [`Ahead::next`] hands them out or
//!   the drop gives them back as what they were.

use super::class::Class;
use super::depot::{Depot, depot};
use super::guard::GuardKind;
use super::pool::Readiness;
use super::slot::{Slot, SlotId, Stack};
use super::{arena, sys};
use std::ops::Range;

/// So many are made ready at a time.
const SOME: usize = sys::RANGES_AT_ONCE;

/// Stacks of one class, the next few of them ready.
#[derive(Debug)]
pub(crate) struct Ahead {
    depot: &'static Depot,
    class: Class,
    top_bytes: usize,
    /// How many more will be asked for.
    wanted: usize,
    /// Those at hand, from the last on. Each with what it was when it was taken.
    slots: [(SlotId, Readiness); SOME],
    len: usize,
}

impl Ahead {
    /// For `count` stacks of the process's depot, to whose `top_bytes` the caller will write.
    pub(crate) fn new(class: Class, count: usize, top_bytes: usize) -> Ahead {
        Ahead::of(depot(), class, count, top_bytes)
    }

    pub(super) fn of(depot: &'static Depot, class: Class, count: usize, top_bytes: usize) -> Ahead {
        let wanted = if count > 1 && class.is_pooled() { count } else { 0 };
        let slots = [(SlotId::NONE, Readiness::Hot); SOME];
        Ahead { depot, class, top_bytes, wanted, slots, len: 0 }
    }

    /// A ready stack, and whether its top is known to be zeroes. `None`: it has to be asked for by
    /// itself, which also tells what is wrong.
    pub(crate) fn next(&mut self) -> Option<(Stack, bool)> {
        if self.len == 0 {
            self.take_some();
        }
        self.len = self.len.checked_sub(1)?;
        let (id, readiness) = self.slots[self.len];
        Some((Stack::from_slot(arena::resolve(id)), readiness == Readiness::Bare))
    }

    fn take_some(&mut self) {
        let count = self.wanted.min(SOME);
        self.wanted -= count;
        if count == 0 {
            return;
        }
        let supply = self.depot.supply(self.class);
        self.depot.pool(self.class).take_many(supply, count, |id, readiness| {
            self.slots[self.len] = (id, readiness);
            self.len += 1;
        });
        if !self.make_ready() {
            self.wanted = 0;
            self.give_back();
        }
    }

    /// Guards and pages for those that lack them. False: some have no guard.
    fn make_ready(&self) -> bool {
        let mut guards = Ranges::NONE;
        let mut tops = Ranges::NONE;
        let pages = self.top_bytes.next_multiple_of(sys::PAGE);
        for (id, readiness) in &self.slots[..self.len] {
            let slot = arena::resolve(*id);
            if slot.guard != GuardKind::Marker {
                return false;
            }
            if *readiness == Readiness::Bare {
                guards.add(guard_of(slot));
            }
            // One page alone is as quick when it is touched.
            if *readiness != Readiness::Hot && pages > sys::PAGE {
                tops.add(slot.top - pages..slot.top);
            }
        }
        // SAFETY: the slots are ours (I1).
        let are_guarded = guards.len == 0 || unsafe { sys::install_markers_of(guards.get()) };
        if are_guarded && tops.len > 0 {
            sys::populate_all(tops.get());
        }
        are_guarded
    }

    fn give_back(&mut self) {
        let pool = self.depot.pool(self.class);
        for (id, readiness) in &self.slots[..self.len] {
            pool.give(*id, *readiness);
        }
        self.len = 0;
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn guard_of(slot: Slot) -> Range<usize> {
    Stack::from_slot(slot).guard()
}

/// Up to [`SOME`] ranges of addresses.
struct Ranges {
    ranges: [Range<usize>; SOME],
    len: usize,
}

impl Ranges {
    const NONE: Ranges = Ranges { ranges: [const { 0..0 }; SOME], len: 0 };

    fn add(&mut self, range: Range<usize>) {
        self.ranges[self.len] = range;
        self.len += 1;
    }

    fn get(&self) -> &[Range<usize>] {
        &self.ranges[..self.len]
    }
}
