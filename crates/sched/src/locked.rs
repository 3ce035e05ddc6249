//! Goroutines locked to their thread.
//!
//! A locked goroutine runs on one machine only, and that machine runs nothing else. Between its
//! turns the machine has no processor; whoever takes the goroutine from a queue hands its own
//! processor over (two futex hops, as in Go). If the goroutine ends locked, so does the thread:
//! what it did to its thread (namespaces, affinity, signal masks) must not leak to others.
//!
//! Where goroutines can't have thread-local blocks of their own (`tls=threads`) each is locked for
//! life to the machine that starts it, and uses that thread's block. The machine has run no other
//! goroutine before and runs none after it, so that thread-locals begin anew.

use crate::blocking::hand_off;
use crate::fleet;
use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::idle;
use crate::machine::{Inside, Machine};
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use gosched_base::rt_abort;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether every goroutine is locked for life.
static ALL_FOR_LIFE: AtomicBool = AtomicBool::new(false);

/// From the start on every goroutine is locked for life to the machine that starts it.
pub(crate) fn lock_all_for_life() {
    // ORDERING: Relaxed; before the first machine.
    ALL_FOR_LIFE.store(true, Relaxed);
}

fn are_all_for_life() -> bool {
    // ORDERING: Relaxed; set once at the start.
    ALL_FOR_LIFE.load(Relaxed)
}

/// `g` is about to run on `machine`: locks it for life, if all are and it has not run before.
#[inline]
pub(crate) fn goroutine_starts(machine: &Machine, g: GRef) {
    if are_all_for_life() && g.locked_to().is_none() {
        machine.lock_depth.set(1);
        machine.locked.set(Some(g));
        g.set_locked_to(Some(machine.id));
    }
}

/// Locks the calling goroutine to its thread until as many calls of [`unlock_os_thread`].
///
/// Go's `runtime.LockOSThread`. A goroutine that ends while locked takes its thread with it. New
/// goroutines that it spawns are not locked. Does nothing on a plain thread, which is locked to
/// itself.
///
/// # Panics
/// After 2^32 nested calls.
pub fn lock_os_thread() {
    let Some(inside) = Inside::enter() else { return };
    let machine = inside.machine();
    let depth = machine.lock_depth.get().checked_add(1);
    if let (Some(depth), Some(g)) = (depth, machine.current()) {
        machine.lock_depth.set(depth);
        machine.locked.set(Some(g));
        g.set_locked_to(Some(machine.id));
    }
    inside.leave();
    assert!(depth.is_some(), "lock_os_thread: nested too deep");
}

/// Undoes one [`lock_os_thread`]. Does nothing if the goroutine is not locked.
///
/// Go's `runtime.UnlockOSThread`.
pub fn unlock_os_thread() {
    let Some(inside) = Inside::enter() else { return };
    let machine = inside.machine();
    let lowest = u32::from(are_all_for_life());
    let depth = machine.lock_depth.get().saturating_sub(1).max(lowest);
    machine.lock_depth.set(depth);
    unlock_if_free(machine);
    inside.leave();
}

/// Unlocks the machine's goroutine if there is no reason left why it was locked.
pub(crate) fn unlock_if_free(machine: &Machine) {
    if machine.lock_depth.get() == 0
        && !machine.has_own_mask.get()
        && !machine.unwinds.get()
        && let Some(g) = machine.locked.take()
    {
        g.set_locked_to(None);
    }
}

/// `g`, which runs on `machine` and is about to wait, may be unwinding: where it shares
/// thread-locals it goes on here, and nobody else does before.
#[cold]
#[inline(never)]
pub(crate) fn goroutine_unwinds(machine: &Machine, g: GRef) {
    if g.shares_tls() && !machine.unwinds.replace(true) {
        machine.locked.set(Some(g));
        g.set_locked_to(Some(machine.id));
    }
}

/// The machine's goroutine is about to wait or has ended: it may have caught its panic.
#[inline]
pub(crate) fn unlock_if_caught(machine: &Machine) {
    if machine.unwinds.get() && !std::thread::panicking() {
        machine.unwinds.set(false);
        unlock_if_free(machine);
    }
}

/// The running goroutine has ended: if it was locked, its thread is to end.
#[inline]
pub(crate) fn goroutine_ended(machine: &Machine, g: GRef) {
    unlock_if_caught(machine);
    if machine.locked.get() == Some(g) {
        g.set_locked_to(None);
        machine.is_ending.set(true);
    }
}

/// On a machine whose goroutine is locked and waits: gives the processor away and sleeps until the
/// goroutine has its turn. Go's `stoplockedm`.
pub(crate) fn wait_for_turn(machine: &'static Machine, g: GRef) -> GRef {
    fleet::locked_sleeps();
    if let Some(p) = machine.processor() {
        machine.part_with(p);
        hand_off(p);
    }
    history::machine(Kind::Sleep, machine, 0);
    machine.parker.sleep();
    fleet::locked_wakes();
    match machine.take_handed() {
        Some(p) => idle::acquire(machine, p),
        // Only `belongs_elsewhere` wakes this parker.
        None => rt_abort!("m{}: woken without a processor", machine.id),
    }
    g
}

/// If `g` is locked to another machine, hands the processor over to that one. Go's `startlockedm`.
#[inline]
pub(crate) fn belongs_elsewhere(machine: &'static Machine, p: &'static Processor, g: GRef) -> bool {
    let Some(owner) = g.locked_to().filter(|id| *id != machine.id) else { return false };
    let Some(owner) = SCHEDULER.machine(owner) else {
        rt_abort!("goroutine {} is locked to a machine that never was", g.id())
    };
    history::processor(Kind::Transit, p);
    machine.part_with(p);
    p.set_machine(None);
    owner.hand_over(p);
    true
}

/// The machine's last act: its processor goes to another one.
pub(crate) fn end_thread(machine: &'static Machine) {
    machine.locked.set(None);
    if let Some(p) = machine.processor() {
        machine.part_with(p);
        hand_off(p);
    }
}
