//! The last spare machine is not for everything.
//!
//! At the limit of threads, or where the system refuses more, machines may all end up waiting for
//! locks that the runtime knows nothing of (glibc's, an allocator's), while the goroutine that
//! holds the lock is runnable: stopped by the monitor, or having yielded. A fresh goroutine on the
//! last machine could go the same way, and nobody would be left for the holder.
//!
//! So the machine that runs while none is in reserve takes goroutines that were stopped in place
//! first, then those that have started before, and never a fresh one. Fresh ones are put aside
//! until a machine is back.
//!
//! Only where no signal can end a blocked call. Where one can, `interrupt` does it in the end whoever
//! blocks, and the rule would choose the goroutine whose call was ended again and again while those
//! that have not started wait (found by the torture test).
//!
//! Only while somebody waits in a futex: machines in other calls wait for nothing that a goroutine
//! here has, and the program may have use for its last thread.
//!
//! Invariants
//! * I1. At most one machine is bound by the rule, so that the others, who have processors, go on
//!   as always.
//! * I2. A goroutine put aside is in no queue; whoever runs unbound puts all of them back first. The
//!   bound machine's processor has its LAST bit set, so that no direct switch passes it by.

use crate::attention::LAST;
use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{fleet, idle, interpose, interrupt};
use gosched_runq::Global;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// The bound machine's number plus one; 0 if none is.
static BOUND: AtomicU32 = AtomicU32::new(0);
/// Machines that lost their processor in a futex that the monitor found them in.
static IN_FUTEX: AtomicU32 = AtomicU32::new(0);
/// Put aside: those that have started before, and those that have not.
static STARTED: Global<GRef> = Global::new();
static FRESH: Global<GRef> = Global::new();

/// The monitor is about to take the processor of a machine that is in a futex.
pub(crate) fn futex_lost() {
    // ORDERING: Relaxed; it steers only.
    IN_FUTEX.fetch_add(1, Relaxed);
}

/// It is back, or was not taken.
pub(crate) fn futex_regained() {
    // ORDERING: Relaxed; it steers only.
    IN_FUTEX.fetch_sub(1, Relaxed);
}

/// How many machines are in such futexes.
pub(crate) fn lost_in_futex() -> u32 {
    // ORDERING: Relaxed; a hint.
    IN_FUTEX.load(Relaxed)
}

/// Whether no machine is in reserve, and none can be made.
#[inline]
pub(crate) fn is_none_left() -> bool {
    fleet::is_exhausted() && SCHEDULER.sleeping_hint() == 0 && !SCHEDULER.is_polled()
}

/// The next goroutine for `machine`; `find` is the usual search.
#[inline]
pub(crate) fn find_by_rule(
    machine: &'static Machine,
    p: &'static Processor,
    is_exhausted: bool,
    mut find: impl FnMut() -> Option<GRef>,
) -> Option<GRef> {
    if is_exhausted && !interrupt::can_end_calls() && binds(machine) {
        // ORDERING: Relaxed; the machine's own processor.
        p.attention.fetch_or(LAST, Relaxed);
        return find_started(find);
    }
    // ORDERING: Relaxed for both; as above.
    if p.attention.load(Relaxed) & LAST != 0 {
        p.attention.fetch_and(!LAST, Relaxed);
    }
    if !STARTED.is_empty() || !FRESH.is_empty() {
        put_back();
    }
    find()
}

/// Whether the rule binds `machine`, which is about to look for a goroutine.
#[cold]
fn binds(machine: &'static Machine) -> bool {
    // ORDERING: Relaxed; it steers only.
    let is_lock_waited_for = interpose::sleepers() > 0 || IN_FUTEX.load(Relaxed) > 0;
    let me = machine.id + 1;
    if !(is_none_left() && is_lock_waited_for) {
        // ORDERING: Relaxed; nothing is published by it.
        let _ = BOUND.compare_exchange(me, 0, Relaxed, Relaxed);
        return false;
    }
    // ORDERING: Acquire pairs with the AcqRel below: what is seen of the bound machine is not older
    // than its being bound.
    let bound = BOUND.load(Acquire);
    if bound == me {
        return true;
    }
    let bound_one = bound.checked_sub(1).and_then(|id| SCHEDULER.machine(id));
    if bound_one.is_some_and(can_run) {
        return false;
    }
    BOUND.compare_exchange(bound, me, AcqRel, Relaxed).is_ok()
}

/// Whether it has a processor and is not in a call.
fn can_run(machine: &Machine) -> bool {
    let ownership = &machine.ownership;
    machine.processor().is_some() && !ownership.is_lost() && !ownership.is_in_call()
}

/// Searches until a goroutine comes that was stopped in place; else the first one that has started.
fn find_started(mut find: impl FnMut() -> Option<GRef>) -> Option<GRef> {
    while let Some(g) = find() {
        if g.is_stopped() {
            return Some(g);
        }
        let aside = if g.has_started() { &STARTED } else { &FRESH };
        aside.push_back(g);
    }
    STARTED.pop_front()
}

#[cold]
fn put_back() {
    SCHEDULER.global.append(STARTED.take_all());
    SCHEDULER.global.append(FRESH.take_all());
    // On their way they were in no queue that a machine about to sleep could see.
    idle::wake_one();
}
