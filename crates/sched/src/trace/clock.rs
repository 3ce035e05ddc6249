//! The clock of traces.
//!
//! The CPU's own counter where the kernel takes its time from it, which it does only while the
//! counters of all CPUs agree and go on at one speed: reading it costs a third of what the system's
//! clock does, which is half of an event. Elsewhere the monotonic clock. How fast it goes is measured
//! from the beginning of a trace to the end of its first generation, and stays what it is to readers
//! until the trace ends.

use gosched_base::os;
use gosched_fiber::arch;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const NS_PER_SECOND: u64 = 1_000_000_000;
/// So many bits of the counter are left out: some nanoseconds are exact enough, and times between
/// events mostly fit a byte.
const COUNTER_SHIFT: u32 = 4;
/// So often both clocks are read for a pair that nothing came between.
const ATTEMPTS: u32 = 8;

static USES_COUNTER: AtomicBool = AtomicBool::new(false);

/// The time of an event, in ticks.
#[inline(always)]
pub(super) fn now() -> u64 {
    // ORDERING: Relaxed; set before the trace began.
    if USES_COUNTER.load(Relaxed) { arch::counter() >> COUNTER_SHIFT } else { os::monotonic_ns() }
}

/// Decides which clock it is. No trace is on. Reads a file.
pub(super) fn choose() {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_counter = fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc");
    // ORDERING: Relaxed; published with the generation.
    USES_COUNTER.store(is_counter, Relaxed);
}

/// How many ticks a second has.
#[derive(Debug)]
pub(super) struct Speed {
    begun: Pair,
    /// Once it was measured.
    ticks_per_second: Option<u64>,
}

/// Both clocks at a time.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    ns: u64,
}

impl Speed {
    /// The trace begins.
    pub(super) fn new() -> Speed {
        Speed { begun: Pair::read(), ticks_per_second: None }
    }

    pub(super) fn ticks_per_second(&mut self) -> u64 {
        let begun = self.begun;
        *self.ticks_per_second.get_or_insert_with(|| between(begun, Pair::read()))
    }
}

impl Pair {
    fn read() -> Pair {
        let read = |_| {
            let before = os::monotonic_ns();
            let ticks = now();
            let took = os::monotonic_ns() - before;
            (took, Pair { ticks, ns: before + took / 2 })
        };
        let best = (0..ATTEMPTS).map(read).min_by_key(|(took, _)| *took);
        best.map_or(Pair { ticks: 0, ns: 0 }, |(_, pair)| pair)
    }
}

fn between(begun: Pair, ended: Pair) -> u64 {
    let ticks = u128::from(ended.ticks.saturating_sub(begun.ticks));
    let ns = u128::from(ended.ns.saturating_sub(begun.ns)).max(1);
    u64::try_from(ticks * u128::from(NS_PER_SECOND) / ns)
        .map_or(NS_PER_SECOND, |speed| speed.max(1))
}

#[cfg(test)]
mod tests {
    use super::{Pair, Speed, between, choose};

    #[test]
    fn speeds_are_ticks_by_time() {
        let at = |ticks, ns| Pair { ticks, ns };
        assert_eq!(between(at(500, 7), at(700, 107)), 2_000_000_000);
        let day = 86_400_000_000_000;
        assert_eq!(between(at(0, 0), at(day / 5, day)), 200_000_000);
        // Clocks that stand still.
        assert_eq!(between(at(5, 5), at(5, 5)), 1);
    }

    #[test]
    fn the_speed_is_measured_once() {
        choose();
        let mut speed = Speed::new();
        let first = speed.ticks_per_second();
        assert!(first > 0);
        assert_eq!(speed.ticks_per_second(), first);
    }
}
