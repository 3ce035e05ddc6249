//! Requests to a processor's holder, seen on every way out of the runtime.
//!
//! One word per processor; 0 on the fast path. The bits say what is asked for.
//!
//! Code that does not enter the runtime looks at one word for all processors, [`ASKED`], at its
//! safepoints. Whoever finds it set looks at its own processor, and takes it back when no processor
//! is asked for anything any more:
//!
//! * Who asks: A1 the processor's bits; A2 `ASKED` = 1.
//! * Who takes back: T1 `ASKED` = 0, by an exchange; T2 look at all bits; T3 if there are any,
//!   `ASKED` = 1. If T1 comes before A2 the word stays set; if after, T1 reads what A2 wrote, so T2
//!   sees the bits.

use crate::current::current_undeclared;
use crate::machine::Inside;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{chaos, fleet, trace, yields};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed, Release},
};

/// The running goroutine has had its share: yield.
pub(crate) const PREEMPT: u32 = 1 << 0;
/// Goroutines wait in the processor's urgent list: the running one makes room for a moment.
pub(crate) const URGENT: u32 = 1 << 2;
/// The machine is the last spare one: its goroutines are chosen by the scheduler, see `last_spare`.
pub(crate) const LAST: u32 = 1 << 3;
/// A trace is on: every event goes through the slow way, see `trace`. Asks for nothing.
pub(crate) const TRACE: u32 = 1 << 4;
/// The world is to stop.
pub(crate) const STOP: u32 = 1 << 1;
/// Dice decide, see `chaos`. Set for good, and asks for nothing either.
pub(crate) const CHAOS: u32 = 1 << 5;
/// The processor is to rest, see `rest`.
pub(crate) const REST: u32 = 1 << 6;
/// Bits that only lead to the slow ways.
pub(crate) const IDLE: u32 = TRACE | CHAOS;

/// Whether some processor's holder is asked for something.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Asks the holder of `p` for what `bits` say.
pub(crate) fn ask(p: &Processor, bits: u32) {
    // ORDERING: AcqRel: the holder that sees the bits sees what comes with them.
    p.attention.fetch_or(bits, AcqRel);
    // ORDERING: Release pairs with `take_back`: A1 before A2.
    ASKED.store(1, Release);
}

/// Whether the holder of `p` is to give it up before it looks for a goroutine.
#[inline]
pub(crate) fn must_part(p: &Processor) -> bool {
    // ORDERING: Relaxed; a request that comes now is seen in the next round.
    p.attention.load(Relaxed) & (STOP | REST) != 0
}

/// Lets others run if the caller has had its share: one load and one branch if not.
///
/// What `#[gosched::preemptible]` puts at a function's entry and into its loops. For loops that
/// can't be stopped by signal, because that is switched off or not possible where they run. On a
/// plain thread it does nothing. Not for signal handlers.
///
/// Go's compiler put such checks at function entries before signals did the work, and into no loop.
///
/// ```
/// let mut sum = 0_u64;
/// for n in 0..1000 {
///     gosched_sched::safepoint();
///     sum += n;
/// }
/// assert_eq!(sum, 499_500);
/// ```
#[inline(always)]
pub fn safepoint() {
    // ORDERING: Relaxed; a request that comes now is seen at the next one.
    if ASKED.load(Relaxed) != 0 {
        safepoint_asked();
    }
}

#[cold]
#[inline(never)]
fn safepoint_asked() {
    if let Some(inside) = current_undeclared().and_then(|_| Inside::enter()) {
        inside.leave();
    }
    take_back();
}

fn take_back() {
    // ORDERING: AcqRel: T1 reads what A2 wrote, or comes before it.
    ASKED.swap(0, AcqRel);
    // ORDERING: Relaxed look, after T1; Release as in `ask`.
    if SCHEDULER.processors().any(|p| p.attention.load(Relaxed) & !IDLE != 0) {
        ASKED.store(1, Release);
    }
}

/// Does what is asked for, and comes back when the goroutine runs again. Short, for traces.
#[cold]
#[inline(never)]
pub(crate) fn attend(inside: Inside) -> Inside {
    // ORDERING: Relaxed, as in `Inside::leave`.
    if inside.processor().attention.load(Relaxed) & !TRACE == 0 {
        return inside;
    }
    attend_to_more(inside)
}

#[cold]
#[inline(never)]
fn attend_to_more(inside: Inside) -> Inside {
    let p = inside.processor();
    // ORDERING: Relaxed, as above.
    let asked = p.attention.load(Relaxed);
    if asked & !IDLE == 0 {
        return chaos::perturb(inside);
    }
    let must_yield = p.take_yield_asked();
    // ORDERING: Relaxed; what comes with the other bits is looked at by the scheduler.
    if p.attention.load(Relaxed) & (STOP | URGENT | REST) != 0 {
        p.counters.asked_yields.add();
        inside.machine().lane.set_why(trace::WHY_ASKED);
        return yields::to_ring_front(inside);
    }
    if must_yield {
        if let Some(g) = inside.machine().current() {
            g.end_slice();
        }
        fleet::slice_is_over(p);
        p.counters.asked_yields.add();
        inside.machine().lane.set_why(trace::WHY_ASKED);
        return yields::to_global_queue(inside);
    }
    inside
}
