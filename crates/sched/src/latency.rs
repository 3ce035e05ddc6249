//! Scheduling latency: how long goroutines are runnable before they run.
//!
//! Sampled, as Go's `/sched/latencies`: the clock is read twice for one of [`WAKES_TO_A_LATENCY`]
//! wakes of a goroutine. The others pay an addition to a byte of the descriptor, whose carry says
//! that it is time, and nothing on the way out: the mark is in a byte that every switch tests anyway.
//!
//! Go samples one of 8. A switch takes a fifth of the time here, and two clocks as much as one and a
//! half of them.
//!
//! The stamp is 32 bits beside the suspended registers, in units of 64 ns (Go's finest bucket); a
//! goroutine that is runnable for more than 274 s is told too short.

use crate::goroutine::GRef;
use crate::histogram::Durations;
use crate::machine::Machine;
use crate::scheduler::SCHEDULER;
use gosched_base::os;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Each goroutine's scheduling latency is measured once in so many wakes, see [`latencies`].
pub const WAKES_TO_A_LATENCY: u32 = 64;
/// A clock that takes longer is a system call, and nothing is sampled.
const CHEAP_NS: u64 = 300;
/// How often the clock is read to find out.
const TRIES: u32 = 16;
const UNIT_BITS: u32 = 6;

/// Whether the clock is cheap.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Looks at the clock. Once, at the start.
pub(crate) fn start() {
    let cost = (0..TRIES).map(|_| {
        let before = os::monotonic_ns();
        os::monotonic_ns() - before
    });
    // ORDERING: Relaxed; a switch that steers.
    IS_ON.store(cost.min().is_some_and(|ns| ns <= CHEAP_NS), Relaxed);
}

/// `g` has just become runnable. Its owner.
#[inline]
pub(crate) fn becomes_runnable(g: GRef) {
    if g.count_wake() {
        stamp(g);
    }
}

#[cold]
#[inline(never)]
fn stamp(g: GRef) {
    // ORDERING: Relaxed; see `start`.
    if IS_ON.load(Relaxed) {
        // SAFETY: the context is the owner's, and nobody else has a reference to it now: a goroutine
        // that yields is not suspended yet, others are not resumed.
        unsafe { &mut *g.context.get() }.set_stamp(now());
        g.set_stamped(true);
    }
}

/// `g`, which is stamped, is about to run on `machine`.
#[cold]
#[inline(never)]
pub(crate) fn runs(machine: &Machine, g: GRef) {
    g.set_stamped(false);
    // SAFETY: as in `stamp`.
    let since = unsafe { &*g.context.get() }.stamp();
    if let Some(p) = machine.processor() {
        p.latencies.record_alone(u64::from(now().wrapping_sub(since)) << UNIT_BITS);
    }
}

/// Whether the clock is cheap enough for latencies to be sampled. For tests.
#[doc(hidden)]
pub fn is_latency_sampled() -> bool {
    crate::start::ensure_started();
    // ORDERING: Relaxed; see `start`.
    IS_ON.load(Relaxed)
}

fn now() -> u32 {
    (os::monotonic_ns() >> UNIT_BITS) as u32
}

/// How long sampled goroutines were runnable before they ran, since the start.
///
/// Go's `/sched/latencies:seconds`. One of [`WAKES_TO_A_LATENCY`] wakes of each goroutine is timed, and none where reading
/// the clock is a system call.
#[must_use]
pub fn latencies() -> Durations {
    let mut sum = Durations::none();
    SCHEDULER.all_processors().for_each(|p| sum.add(&p.latencies));
    sum
}
