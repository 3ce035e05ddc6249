//! Parking a goroutine and making it ready again.

use crate::attention::IDLE;
use crate::goroutine::GRef;
use crate::machine::{Inside, Machine};
use crate::plant::{Place, Wake};
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{chaos, forked, history, idle, jumps, plant, switch, transition};
use gosched_base::rt_abort;
use gosched_runq::Overflow;
use std::sync::atomic::Ordering::Relaxed;

/// Suspends the running goroutine, then runs `commit` with it on the resumed side: true publishes
/// it to its waker, false resumes it.
///
/// Go's `gopark`, with its unlock function.
#[inline(always)]
pub(crate) fn park<F: FnOnce(GRef) -> bool>(
    inside: Inside,
    reason: WaitReason,
    commit: F,
) -> Inside {
    let Some(g) = inside.machine().current() else {
        rt_abort!("park: the scheduler can't park itself")
    };
    plant::here(Place::Park);
    transition::park(g, reason);
    let mut commit = Some(commit);
    // SAFETY: `g` runs here and is Waiting now; `commit_park` takes the closure off its stack
    // before it publishes `g`.
    unsafe { switch::leave(inside, g, commit_park::<F>, (&raw mut commit).cast()) }
}

/// # Safety
/// * `g` is suspended and `data` is the `Option<F>` on its stack.
unsafe fn commit_park<F: FnOnce(GRef) -> bool>(inside: Inside, g: GRef, data: *mut ()) -> Inside {
    // SAFETY: by the caller. Taken out first: once published, `g` may run and leave that frame.
    let commit = unsafe { (*data.cast::<Option<F>>()).take() };
    let stays = commit.is_none_or(|commit| commit(g));
    if !stays {
        transition::ready(g);
        jumps::push_ahead(inside.processor(), g);
        // This machine may run another goroutine by now.
        idle::wake_one_for(Wake::Commit);
    }
    inside
}

/// Makes `g` runnable, from anywhere. Whoever took it out of its wait structure, once.
///
/// Go's `ready`.
#[inline]
pub(crate) fn ready(g: GRef) {
    match Inside::enter() {
        Some(inside) => {
            ready_inside(&inside, g);
            inside.leave();
        }
        None => ready_from_outside(g),
    }
}

/// As [`ready`], inside the runtime: `g` runs next on this processor.
#[inline]
pub(crate) fn ready_inside(inside: &Inside, g: GRef) {
    plant::here(Place::Ready);
    match inside.machine().processor() {
        // ORDERING: Relaxed; a trace begins while nobody runs here.
        Some(p) if p.attention.load(Relaxed) & IDLE == 0 => {
            transition::ready_untraced(g);
            let filled = push_next(p, g);
            idle::wake_one_for_next(Wake::Ready, filled);
        }
        p => ready_attentively(inside.machine(), p, g),
    }
}

/// As [`ready_inside`], if a trace is on or dice decide, or on a machine without a processor.
#[cold]
#[inline(never)]
fn ready_attentively(machine: &'static Machine, p: Option<&'static Processor>, g: GRef) {
    let Some(p) = p else {
        transition::ready(g);
        SCHEDULER.global.push_back(g);
        return idle::wake_one_for(Wake::Ready);
    };
    transition::ready_on(machine, g);
    if chaos::sends_to_tail(p) {
        push_back(p, g);
        idle::wake_one_for(Wake::Ready);
    } else {
        let filled = push_next(p, g);
        idle::wake_one_for_next(Wake::Ready, filled);
    }
}

/// As [`ready_inside`], but `g` goes to the ring's tail: it gets its turn, not the next one.
#[inline]
pub(crate) fn ready_in_turn(inside: &Inside, g: GRef) {
    transition::ready_on(inside.machine(), g);
    push_back(inside.processor(), g);
    idle::wake_one_for(Wake::InTurn);
}

/// As [`ready`], from a plain thread: no lock of the scheduler's, since anyone can stop it.
#[cold]
pub(crate) fn ready_from_outside(g: GRef) {
    forked::check();
    transition::ready(g);
    inject(g);
}

/// Gives a runnable goroutine to the scheduler without any lock.
pub(crate) fn inject(g: GRef) {
    SCHEDULER.injected.push(g);
    idle::wake_one_from_outside();
}

/// What [`push_next`] has done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The slot was empty.
    Empty,
    /// Who was there is in the ring now.
    Displaced,
}

/// Puts `g` into the next slot; what was there goes to the ring's tail.
#[inline]
pub(crate) fn push_next(p: &'static Processor, g: GRef) -> Filled {
    history::next(p, g);
    // SAFETY: the caller holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    match queue.push_next(g) {
        None => Filled::Empty,
        Some(displaced) => {
            push_back(p, displaced);
            Filled::Displaced
        }
    }
}

/// Puts `g` at the ring's tail; half of a full ring goes to the global queue.
#[inline]
pub(crate) fn push_back(p: &'static Processor, g: GRef) {
    // SAFETY: the caller holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    if let Err(Overflow(batch)) = queue.push_back(g) {
        p.counters.overflows.add();
        SCHEDULER.global.append(batch);
    }
}

/// Puts `g` at the ring's head.
pub(crate) fn push_front(p: &'static Processor, g: GRef) {
    // SAFETY: the caller holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    if let Err(full) = queue.push_front(g) {
        push_back(p, full.0);
    }
}
