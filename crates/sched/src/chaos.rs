//! Decisions by dice: `GOSCHED=chaos=SEED`, to find what holds only in the usual order.
//!
//! Each decision stays one that the scheduler could have made; only how often it makes it differs:
//! * on its way out of the runtime a goroutine yields now and then, as if its slice had ended there;
//! * what is made runnable goes to the ring's tail instead of the next slot;
//! * the ring's head goes before the next slot, and the global queue before both, out of turn;
//! * slices end at any part of their time;
//! * processors go to rest for a moment, as if machines shared a CPU;
//! * machines give their processors away for declared calls, as if the calls before had lasted.
//!
//! The seed repeats the dice of each processor, and so the order in which one processor runs what
//! waits for nothing but goroutines. It does not repeat what the kernel decides: which thread is
//! quicker, when the monitor looks, when files are ready.
//!
//! Go has `randomizeScheduler`, which is on under its race detector: the second of these.
//!
//! Costs when off: one bit of the processor's `attention`, which the way out reads anyway, where a
//! goroutine is made runnable.

use crate::attention::CHAOS;
use crate::machine::Inside;
use crate::processor::Processor;
use crate::{trace, yields};
use gosched_base::Rng;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// One in so many ways out of the runtime yields.
const YIELDS_ONE_IN: u32 = 16;
/// And one in so many of these to everybody, not to this processor's alone.
const GLOBALLY_ONE_IN: u32 = 4;
/// One in so many goroutines that are made runnable goes to the tail.
const TO_TAIL_ONE_IN: u32 = 2;
/// One in so many searches takes the ring's head first, or has a fairness round.
const OUT_OF_TURN_ONE_IN: u32 = 4;
/// For one in so many declared calls the processor is given away.
const HANDS_ON_ONE_IN: u32 = 8;

/// Before one in so many of the monitor's looks some processors go to rest.
const RESTS_ONE_IN: u32 = 4;

/// Written by: the start. Read by: whoever makes a processor, the monitor.
static IS_ON: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);

/// From now on the dice decide. Before there are processors.
pub(crate) fn start(seed: u64) {
    // ORDERING: Relaxed; published by the next line.
    SEED.store(seed, Relaxed);
    // ORDERING: Release pairs with `seed`.
    IS_ON.store(true, Release);
}

fn seed() -> Option<u64> {
    // ORDERING: Acquire pairs with `start`; Relaxed for what it published.
    IS_ON.load(Acquire).then(|| SEED.load(Relaxed))
}

/// The dice of a new processor, and the bits with which its `attention` begins.
pub(crate) fn of_processor(id: u32) -> (Rng, u32) {
    let own = u64::from(id) + 1;
    match seed() {
        None => (Rng::new(own), 0),
        Some(seed) => (Rng::new(seed.wrapping_mul(0x100_0000_01b3).wrapping_add(own)), CHAOS),
    }
}

/// Whether a goroutine that is made runnable loses the next slot. For the holder of `p`.
#[inline(always)]
pub(crate) fn sends_to_tail(p: &Processor) -> bool {
    hits(p, TO_TAIL_ONE_IN)
}

/// Whether the search goes out of turn. For the holder of `p`.
#[inline(always)]
pub(crate) fn goes_out_of_turn(p: &Processor) -> bool {
    hits(p, OUT_OF_TURN_ONE_IN)
}

/// Whether a declared call is taken to last. For the holder of `p`.
#[inline(always)]
pub(crate) fn hands_on(p: &Processor) -> bool {
    hits(p, HANDS_ON_ONE_IN)
}

/// Never, if it is off.
#[inline(always)]
fn hits(p: &Processor, one_in: u32) -> bool {
    // ORDERING: Relaxed; the bit never changes.
    p.attention.load(Relaxed) & CHAOS != 0 && throw(p, one_in)
}

#[cold]
#[inline(never)]
fn throw(p: &Processor, one_in: u32) -> bool {
    // SAFETY: by the callers, this machine holds `p`, inside the runtime.
    unsafe { p.core() }.rng.below(one_in) == 0
}

/// Yields now and then, on the way out of the runtime; comes back when the goroutine runs again.
pub(crate) fn perturb(inside: Inside) -> Inside {
    let p = inside.processor();
    if !hits(p, YIELDS_ONE_IN) {
        return inside;
    }
    p.counters.asked_yields.add();
    inside.machine().lane.set_why(trace::WHY_ASKED);
    if throw(p, GLOBALLY_ONE_IN) {
        yields::to_global_queue(inside)
    } else {
        yields::to_ring_tail(inside)
    }
}

/// How much of a slice there is this time. For the monitor.
pub(crate) fn part_of_slice(slice_ns: u64) -> u64 {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let Some(seed) = seed() else { return slice_ns };
    // ORDERING: Relaxed; the monitor's own.
    let look = LOOKS.fetch_add(1, Relaxed);
    let sixteenths = 1 + Rng::new(seed ^ look.rotate_left(32)).below(16);
    slice_ns / 16 * u64::from(sixteenths)
}

/// How many of `procs` processors are to rest until the next look; `None` if no dice decide. For the
/// monitor.
pub(crate) fn puts_to_rest(procs: u32) -> Option<u32> {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let seed = seed()?;
    // ORDERING: Relaxed; the monitor's own.
    let look = LOOKS.fetch_add(1, Relaxed);
    let mut dice = Rng::new(seed ^ look.rotate_left(16));
    Some(if dice.below(RESTS_ONE_IN) == 0 { dice.below(procs) } else { 0 })
}
