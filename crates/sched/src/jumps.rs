//! Who may go before the ring's head, and how often.
//!
//! A goroutine whose timer is due, one that the monitor found urgent, one that made room for it, and
//! one that did not have to wait after all, go before those in the ring: they have waited long
//! enough, or go on where they were. Without a bound they could do so for ever: a time-out that is
//! always due again passes a goroutine whose turn takes the scheduler's stack (it is locked to
//! another thread, or has no stack yet) each time that it gets there.
//!
//! So the ring's head is passed at most [`JUMPS_MAX`] times; after that everybody goes to the tail
//! until it has left. What goes before it at once counts as one.

use crate::goroutine::GRef;
use crate::park;
use crate::processor::Processor;
use crate::switch::FAIRNESS_ROUNDS;
use gosched_runq::SLOTS;

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
}

/// Whether the caller may put goroutines before the head of `p`, which it holds; counted.
pub(crate) fn may_jump(p: &'static Processor) -> bool {
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let first = unsafe { p.queue() }.first_index();
    // SAFETY: as above.
    p.ring.is_empty() || unsafe { p.core() }.jumps.allow(first)
}

/// Puts `g` before the ring's head, or to the tail if others have gone there too often.
pub(crate) fn push_ahead(p: &'static Processor, g: GRef) {
    if may_jump(p) {
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
