//! How early the monitor gets up for a timer.
//!
//! The kernel brings a sleeper back late, most of all on a CPU that has gone to sleep itself: by 30
//! to 100 us on a virtual machine, which is what a goroutine beside computing ones is late then.
//! Where a CPU is left over the monitor asks for an earlier time, by what it was late lately, and
//! stays awake for the rest. The time that it stays awake is bounded.

use crate::scheduler::SCHEDULER;
use gosched_base::{Parker, os};

/// The longest lead: who is later than this is late for want of a CPU.
const LEAD_MAX_NS: u64 = 100_000;
/// Awake for at most one part in so many of the time.
const SHARE: u64 = 16;
/// So much of its share may be left over from before.
const SAVED_MAX_NS: u64 = 1_000_000;
/// How slowly the mean follows.
const WEIGHT: u64 = 8;

pub(super) struct Lead {
    /// How late it was lately, on average.
    late: u64,
    /// How long it may stay awake, as of `at`.
    saved: u64,
    at: u64,
}

impl Lead {
    pub(super) const fn new() -> Lead {
        Lead { late: 0, saved: 0, at: 0 }
    }

    /// Sleeps until `due`, the time of a timer, or until it is called, which it returns.
    pub(super) fn sleep_until(&mut self, due: u64, parker: &Parker) -> bool {
        let mut now = os::monotonic_ns();
        if let Some(asked) = self.asks(now, due, has_spare_cpu()) {
            if parker.sleep_until(asked) {
                return true;
            }
            now = os::monotonic_ns();
            self.note_late(now.saturating_sub(asked));
        }
        self.note_awake(due.saturating_sub(now));
        // The CPU that is left over may be another one than this thread is on.
        parker.stay_awake_until(due, os::yield_cpu)
    }

    /// What to ask the kernel for; `None` if that would be over. A sleep that is over when it begins
    /// takes 15 us all the same, in which the kernel gives the CPU to nobody, and says nothing of how
    /// late others are.
    fn asks(&mut self, now: u64, due: u64, has_spare_cpu: bool) -> Option<u64> {
        let asked = due.saturating_sub(self.before(now, has_spare_cpu));
        (asked > now).then_some(asked)
    }

    /// By how much it wakes earlier.
    fn before(&mut self, now: u64, has_spare_cpu: bool) -> u64 {
        self.saved = (self.saved + now.saturating_sub(self.at) / SHARE).min(SAVED_MAX_NS);
        self.at = now;
        let lead = (self.late + self.late / 2).min(LEAD_MAX_NS);
        if has_spare_cpu && self.saved >= lead { lead } else { 0 }
    }

    /// It was so late.
    fn note_late(&mut self, late: u64) {
        self.late += late.min(2 * LEAD_MAX_NS) / WEIGHT;
        self.late -= self.late / WEIGHT;
    }

    /// It stays awake for so long.
    fn note_awake(&mut self, rest: u64) {
        self.saved = self.saved.saturating_sub(rest);
    }
}

/// Whether the goroutines leave it a CPU, as far as this process goes.
pub(super) fn has_spare_cpu() -> bool {
    (SCHEDULER.procs() as usize) < crate::num_cpu()
}

#[cfg(test)]
mod tests {
    use super::{LEAD_MAX_NS, Lead, SHARE};

    #[test]
    fn it_gets_up_by_what_it_was_late_lately() {
        let mut lead = Lead::new();
        let mut now = 1_000_000_000;
        assert_eq!(lead.before(now, true), 0, "nothing is known yet");
        for _ in 0..100 {
            lead.note_late(40_000);
        }
        now += 1_000_000_000;
        let early = lead.before(now, true);
        assert!((40_000..70_000).contains(&early), "{early}");
        assert_eq!(lead.before(now, false), 0, "no CPU is left over");
        for _ in 0..100 {
            lead.note_late(u64::MAX);
        }
        assert_eq!(lead.before(now, true), LEAD_MAX_NS);
        for _ in 0..1_000 {
            lead.note_late(0);
        }
        assert!(lead.before(now, true) < 100);
    }

    #[test]
    fn it_stays_awake_for_a_share_of_the_time() {
        let mut lead = Lead::new();
        for _ in 0..100 {
            lead.note_late(50_000);
        }
        let (began, mut now, mut awake) = (1_000_000_000, 1_000_000_000, 0);
        lead.before(now, true);
        while now < began + 1_000_000_000 {
            now += 100_000;
            let early = lead.before(now, true);
            lead.note_late(50_000);
            lead.note_awake(early);
            awake += early;
        }
        let share = (now - began) / SHARE;
        assert!(awake > share / 2 && awake < share + 2_000_000, "{awake} of {share}");
    }

    #[test]
    fn it_asks_for_nothing_that_is_over() {
        let mut lead = Lead::new();
        for _ in 0..100 {
            lead.note_late(40_000);
        }
        let now = 1_000_000_000;
        let asked = lead.asks(now, now + 200_000, true).expect("there is time");
        assert!((now + 100_000..now + 160_000).contains(&asked), "{asked}");
        assert_eq!(lead.asks(now, now + 20_000, true), None);
        assert_eq!(lead.asks(now, now + 20_000, false), Some(now + 20_000));
        assert_eq!(lead.asks(now, now, false), None, "it is due");
    }
}
