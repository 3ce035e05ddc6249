//! Calls that block in the kernel.
//!
//! Declared ([`blocking`]): Go's enter and exit of system calls. The machine keeps its processor in
//! name; the monitor takes it if the call lasts, or the machine has given it away already where the
//! calls before have lasted (see `foresight`). The machine gets one back, or queues its goroutine,
//! when it returns.
//!
//! Undeclared: the monitor has found the thread asleep and revoked the processor (see `monitor`).
//! The machine runs on without one until it enters the runtime, where [`regain`] sees to it.

use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::machine::{Inside, Machine};
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{
    chaos, deadlock, fleet, foresight, idle, last_spare, monitor, switch, trace, transition,
};
use gosched_base::{os, rt_abort};
use gosched_protocol::Status;
use std::sync::atomic::Ordering::Relaxed;

/// A hand-off counts as so many rounds: it takes as long as hundreds. Otherwise goroutines in the
/// global queue would wait behind a ring full of blocking ones for 61 hand-offs.
const HAND_OFF_ROUNDS: u32 = 16;

/// Runs `f`, which may block in the kernel, while others use the processor.
///
/// Go's system calls and cgo calls. `f` may do anything; whatever needs the runtime ends the
/// declared state early. On a plain thread it just calls `f`.
///
/// Without it nothing stalls either: a call that blocks undeclared is noticed within 10 ms, and where
/// calls do so again and again within a fraction of one. Declared, it is cheaper and noticed at once.
///
/// ```
/// let pid = gosched_sched::blocking(std::process::id);
/// assert_eq!(pid, std::process::id());
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    let Some(inside) = Inside::enter() else { return f() };
    if let Some(g) = inside.machine().current() {
        // SAFETY: the context of a goroutine that runs is its own.
        let context = unsafe { &mut *g.context.get() };
        // For dumps: this frame stays while `f` runs.
        context.note_here();
    }
    begin(inside);
    let _call = Call;
    f()
}

/// Ends the call, also when `f` unwinds.
struct Call;

impl Drop for Call {
    fn drop(&mut self) {
        // Entering the runtime is what ends a call.
        if let Some(inside) = Inside::enter() {
            inside.leave();
        }
    }
}

/// Enters the declared state and leaves the runtime.
fn begin(inside: Inside) {
    let machine = inside.machine();
    let Some(g) = machine.current() else { rt_abort!("blocking: on the scheduler's stack") };
    let p = inside.processor();
    let work_waits = !p.ring.is_empty() || !SCHEDULER.global.is_empty();
    let hands_on = work_waits && (p.foresight.says_long() || chaos::hands_on(p));
    transition::enter_call(machine, g);
    machine.ownership.begin_call(p.id);
    if hands_on {
        hand_on(machine);
    }
    inside.leave_for_call();
    monitor::note_call(work_waits && !hands_on);
}

/// Gives the processor of the call that has just begun to another machine. Inside the runtime, which
/// the caller leaves without it.
#[cold]
fn hand_on(machine: &'static Machine) {
    // Whoever stops the world may have come first.
    if let Some(p) = trace::take_from_call(machine) {
        machine.handed_on_at.set(os::monotonic_ns());
        SCHEDULER.counts.declared_hand_offs.add_shared();
        SCHEDULER.counts.prompt_hand_offs.add_shared();
        hand_off(p);
    }
}

/// A call is over for which the machine may have given `p` away: was it worth it?
fn judge(machine: &Machine, p: &Processor) {
    let at = machine.handed_on_at.take();
    if at != 0 && os::monotonic_ns().saturating_sub(at) < foresight::SHORT_NS {
        p.foresight.note_short();
    }
}

/// The first thing inside the runtime on a machine whose ownership word is disturbed.
#[cold]
#[inline(never)]
pub(crate) fn settle_ownership(inside: Inside) -> Inside {
    let machine = inside.machine();
    let kept = match machine.current().filter(|g| g.status.get() == Status::Syscall) {
        Some(g) => {
            let kept = machine.ownership.end_call(machine.expect_processor().id);
            if kept {
                machine.expect_processor().foresight.note_short();
                trace::call_ends(machine, g);
            }
            transition::exit_call(g);
            kept
        }
        None => {
            let kept = machine.ownership.keep();
            if !kept {
                SCHEDULER.counts.runs_without_processor.add_shared();
            }
            kept
        }
    };
    if kept { inside } else { regain(inside) }
}

/// The processor is gone: gets another, or gives the goroutine to those who have one.
fn regain(inside: Inside) -> Inside {
    let machine = inside.machine();
    history::machine(Kind::Lost, machine, 0);
    machine.lane.wait_for_borrower();
    judge(machine, machine.expect_processor());
    machine.set_processor(None);
    // ORDERING: Relaxed; written before the processor was taken.
    if machine.lost_in_futex.load(Relaxed) {
        machine.lost_in_futex.store(false, Relaxed);
        last_spare::futex_regained();
    }
    if take_processor(machine) {
        machine.ownership.regained();
        if let Some(g) = machine.current() {
            trace::call_ends_elsewhere(machine, g);
        }
        return inside;
    }
    let Some(g) = machine.current() else {
        // The scheduler's stack never loses its processor: it is inside the runtime.
        rt_abort!("m{}: the scheduler lost its processor", machine.id)
    };
    machine.ownership.regained();
    transition::yielded_without_processor(machine, g);
    // SAFETY: `g` runs here and is Runnable now; `to_global` puts it into a queue.
    unsafe { switch::leave_without_processor(inside, g, to_global) }
}

/// An idle processor, or one for which no machine was found yet.
fn take_processor(machine: &'static Machine) -> bool {
    if let Some(p) = SCHEDULER.take_idle() {
        idle::acquire(machine, p);
        return true;
    }
    let Some(p) = fleet::take_order() else { return false };
    idle::acquire(machine, p);
    // It counted among the searchers, and has found work now.
    if SCHEDULER.searchers.found() {
        idle::wake_one();
    }
    true
}

/// # Safety
/// * `g` is suspended, runnable and in no queue.
unsafe fn to_global(inside: Inside, g: GRef, _: *mut ()) -> Inside {
    SCHEDULER.global.push_back(g);
    idle::wake_one();
    inside
}

/// Finds a machine for a processor whose machine is blocked, or puts it among the idle.
///
/// Go's `handoffp`. The caller has taken the processor from its machine.
pub(crate) fn hand_off(p: &'static Processor) {
    history::processor(Kind::Transit, p);
    p.set_machine(None);
    p.age(HAND_OFF_ROUNDS);
    if idle::is_work_in_sight() || !SCHEDULER.is_polled() {
        SCHEDULER.searchers.join_for_sure();
        idle::start_searcher_on(p);
        return;
    }
    SCHEDULER.give_idle(p);
    idle::recheck_after_release();
    deadlock::machine_sleeps();
}
