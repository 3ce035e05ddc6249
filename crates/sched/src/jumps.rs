//! Who may go before the ring's head, and how often.
//!
//! A goroutine whose timer is due, one that the monitor found urgent, one that made room for it, and
//! one that did not have to wait after all, go before those in the ring: they have waited long
//! enough, or go on where they were. Without a bound they could do so for ever: a time-out that is
//! always due again passes a goroutine whose turn takes the scheduler's stack (it is locked to
//! another thread, or has no stack yet) each time that it gets there.
//!
//! So the ring's head is passed at most [`JUMPS_MAX`] times; after that everybody goes to the tail
//! until it has left, and timers stay in their heap. What goes before it at once counts as one.

use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::park;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::switch::FAIRNESS_ROUNDS;
use gosched_runq::{HALF, SLOTS};

/// How often the ring's head is passed. As patient as the global queue.
const JUMPS_MAX: u32 = FAIRNESS_ROUNDS;

/// Who was passed, and how often. Holder of the processor only.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    /// Where the head was when it was passed for the first time.
    passed: u32,
    count: u32,
}

impl Jumps {
    /// Whether somebody may go before the head, which is at `first`; counted.
    fn allow(&mut self, first: u32) -> bool {
        // It is still there if its place is not behind the ring's first.
        if self.count == 0 || self.passed.wrapping_sub(first) > SLOTS as u32 {
            (self.passed, self.count) = (first, 0);
        }
        self.count += 1;
        self.count <= JUMPS_MAX
    }

    /// How many stand before whoever was passed.
    fn ahead(&self, first: u32) -> usize {
        let ahead = self.passed.wrapping_sub(first) as usize;
        if self.count > 0 && ahead <= SLOTS { ahead } else { 0 }
    }

    /// The ring's first `kept`, from `first` on, now stand `by` places further on.
    fn follow(&mut self, first: u32, kept: u32, by: u32) {
        if self.passed.wrapping_sub(first) < kept {
            self.passed = self.passed.wrapping_add(by);
        }
    }
}

/// Whether the caller may put goroutines before the head of `p`, which it holds; counted.
pub(crate) fn may_jump(p: &'static Processor) -> bool {
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let first = unsafe { p.queue() }.first_index();
    // SAFETY: as above.
    p.ring.is_empty() || unsafe { p.core() }.jumps.allow(first)
}

/// How many have gone before the head of `p`, which the caller holds, and are still there.
pub(crate) fn ahead(p: &'static Processor) -> usize {
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let first = unsafe { p.queue() }.first_index();
    // SAFETY: as above.
    if p.ring.is_empty() { 0 } else { unsafe { p.core() }.jumps.ahead(first) }
}

/// Makes room for `count` goroutines before the head of `p`, which the caller holds and wakes others
/// for: the second half of a ring that is too full goes to the global queue. The first half stays.
/// They have waited longest, or went ahead just now, and would be behind everybody there.
pub(crate) fn make_room(p: &'static Processor, count: usize) {
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    if queue.room() >= count {
        return;
    }
    let first = queue.first_index();
    let second_half = queue.split_off(HALF);
    if second_half.is_empty() {
        // Thieves have made room.
        return;
    }
    // SAFETY: as above.
    let core = unsafe { p.core() };
    let by = queue.first_index().wrapping_sub(first);
    core.jumps.follow(first, HALF as u32, by);
    core.passed_by_global = core.passed_by_global.map(|passed| passed.wrapping_add(by));
    p.counters.overflows.add();
    SCHEDULER.global.append(second_half);
    history::anyone(Kind::Moved, 0);
}

/// Puts `g` before the ring's head, or to the tail if others have gone there too often.
pub(crate) fn push_ahead(p: &'static Processor, g: GRef) {
    if may_jump(p) {
        make_room(p, 1);
        park::push_front(p, g);
    } else {
        park::push_back(p, g);
    }
}

#[cfg(test)]
mod tests {
    use super::{JUMPS_MAX, Jumps};

    /// A ring whose head goes back by one at each jump, and forward when the jumper runs.
    #[test]
    fn the_head_is_passed_so_many_times() {
        for start in [0_u32, 5, u32::MAX, u32::MAX - 3] {
            let mut jumps = Jumps::default();
            for _ in 0..3 {
                assert_eq!((0..200).take_while(|_| jumps.allow(start)).count() as u32, JUMPS_MAX);
                // Served: the next one has the same patience.
                let next = start.wrapping_add(1);
                assert_eq!((0..200).take_while(|_| jumps.allow(next)).count() as u32, JUMPS_MAX);
                jumps = Jumps::default();
            }
        }
    }

    #[test]
    fn a_head_that_is_moved_keeps_its_count() {
        let mut jumps = Jumps::default();
        for first in 0..JUMPS_MAX {
            assert!(jumps.allow(0_u32.wrapping_sub(first)));
        }
        let first = 1_u32.wrapping_sub(JUMPS_MAX);
        jumps.follow(first, 128, 256);
        assert!(!jumps.allow(first.wrapping_add(256)), "still behind those who passed it");
        // Behind what stays: it has left.
        let mut jumps = Jumps::default();
        assert!((0..JUMPS_MAX).all(|first| jumps.allow(0_u32.wrapping_sub(first))));
        jumps.follow(first, 10, 256);
        assert!(jumps.allow(first.wrapping_add(256)));
    }

    #[test]
    fn those_before_the_head_do_not_hide_it() {
        let mut jumps = Jumps::default();
        // Each jumper stays: the head is ever further behind the first.
        let allowed = (0..200_u32).take_while(|n| jumps.allow(7_u32.wrapping_sub(*n))).count();
        assert_eq!(allowed as u32, JUMPS_MAX);
        // They have left, and it is first again.
        assert!(!jumps.allow(7));
        assert!(jumps.allow(8));
    }
}
