//! Dead descriptors that no processor keeps.
//!
//! Whoever has too many gives a portion away, and whoever has none takes one, as it is: to cut one off
//! would be to walk through it, which is a cache line from another CPU for each step, under the lock.

use crate::goroutine::GRef;
use crate::processor::FREE_MAX;
use gosched_runq::{Batch, List};

/// What a processor gives away or takes at once. (Go: 32.)
pub(crate) const PORTION: usize = 32;
/// So many portions are kept whole: four times what a processor keeps.
const PORTIONS: usize = 4 * FREE_MAX / PORTION;

/// All of them.
pub(crate) struct Spare {
    portions: [List<GRef>; PORTIONS],
    count: usize,
    /// In no particular order.
    rest: List<GRef>,
}

impl Spare {
    pub(crate) const fn none() -> Spare {
        Spare { portions: [const { List::new() }; PORTIONS], count: 0, rest: List::new() }
    }

    /// A portion, or any other number of them.
    pub(crate) fn give(&mut self, some: Batch<GRef>) {
        if self.count == PORTIONS || !(1..=PORTION).contains(&some.len()) {
            return self.rest.append(some);
        }
        self.portions[self.count] = some.into_list();
        self.count += 1;
    }

    pub(crate) fn give_one(&mut self, g: GRef) {
        self.rest.push_back(g);
    }

    /// A portion, or as many of the rest; fewer if there are no more.
    pub(crate) fn take(&mut self) -> Batch<GRef> {
        self.take_portion().unwrap_or_else(|| self.rest.take(PORTION))
    }

    /// All but `keep`.
    pub(crate) fn take_beyond(&mut self, keep: usize) -> Batch<GRef> {
        while let Some(portion) = self.take_portion() {
            self.rest.append(portion);
        }
        let kept = self.rest.take(keep);
        // All at once: a walk over many would keep everybody from the lock meanwhile.
        let surplus = std::mem::take(&mut self.rest);
        self.rest.append(kept);
        surplus.into()
    }

    fn take_portion(&mut self) -> Option<Batch<GRef>> {
        self.count = self.count.checked_sub(1)?;
        Some(std::mem::take(&mut self.portions[self.count]).into())
    }
}
