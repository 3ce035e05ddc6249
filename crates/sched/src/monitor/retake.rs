//! Processors of machines that block: taken, and handed to others.

use super::{Noted, PAUSE_MAX_NS};
use crate::blocking::hand_off;
use crate::machine::Machine;
use crate::observe::{Eyes, Whereabouts};
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{last_spare, preempt, trace};
use gosched_base::{barrier, os};
use gosched_protocol::Status;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A machine asleep in an undeclared call for this long loses its processor; at once if work
/// waits and nobody else would run it.
const REVOKE_NS: u64 = 200_000;
/// The same in a futex, or in a call that changes the process's mappings and waits for others that do:
/// both are often short.
const REVOKE_LOCK_NS: u64 = 1_000_000;
/// The same outside a system call (a page fault, a freezer).
const REVOKE_FAULT_NS: u64 = 5_000_000;
/// The same where the kernel doesn't say where the thread is, so that it may as well wait for a CPU.
/// Long against what threads wait for one; it does no harm if it does (see `take_from_sleeper`).
const REVOKE_BLIND_NS: u64 = 50_000_000;

/// See `is_burst`.
static IN_BURST: AtomicBool = AtomicBool::new(false);

/// What the monitor saw of a machine the last time. Monitor only.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    leaves: Noted,
    cpu_ns: Noted,
    since: Noted,
    call_since: Noted,
}

impl Watch {
    /// Whether the thread has computed since the last look: one that was asleep then, sleeps.
    pub(super) fn has_computed(&self, eyes: &Eyes) -> bool {
        eyes.cpu_time().is_some_and(|cpu| cpu != self.cpu_ns.get())
    }
}

/// Looks at every busy processor; how many were taken from their machines.
pub(super) fn retake(now: u64) -> usize {
    let taken = SCHEDULER.processors().filter(|p| look_at(p, now)).count();
    // ORDERING: Relaxed; the monitor's own.
    IN_BURST.store(taken > 0, Relaxed);
    taken
}

fn look_at(p: &'static Processor, now: u64) -> bool {
    let Some(machine) = p.machine() else { return false };
    if machine.ownership.is_in_call() {
        look_at_call(p, machine, now)
    } else {
        look_at_progress(p, machine, now)
    }
}

/// Whether the round before this one has found a blocked machine: then others are likely, and one
/// look is enough.
fn is_burst() -> bool {
    // ORDERING: Relaxed; the monitor's own.
    IN_BURST.load(Relaxed)
}

/// A declared call: the processor is taken at the second look, or after 10 ms if nobody needs it.
fn look_at_call(p: &'static Processor, machine: &'static Machine, now: u64) -> bool {
    let watch = &machine.watch;
    let leaves = u64::from(machine.leaves());
    let is_first_look = watch.leaves.replace(leaves) != leaves || watch.call_since.get() == 0;
    if is_first_look {
        watch.call_since.set(now);
        if !is_burst() {
            return false;
        }
    }
    let lasted = now.saturating_sub(watch.call_since.get());
    if !is_wanted(p) && lasted < PAUSE_MAX_NS {
        return false;
    }
    let Some(taken) = trace::take_from_call(machine) else { return false };
    watch.call_since.set(0);
    SCHEDULER.counts.declared_hand_offs.add_shared();
    taken.foresight.note_long();
    // Not `p`: the machine may have come back, lost that one and begun a call with another.
    hand_off(taken);
    true
}

/// Whether somebody could use `p` who has no other processor for it.
fn is_wanted(p: &Processor) -> bool {
    !p.ring.is_empty()
        || (SCHEDULER.idle_count() == 0 && SCHEDULER.searchers.count() == 0)
        || p.timers.next_deadline() != u64::MAX
}

/// Not in a declared call: is the thread asleep in the kernel?
fn look_at_progress(p: &'static Processor, machine: &'static Machine, now: u64) -> bool {
    let Some(leaves) = machine.progress() else {
        machine.watch.since.set(0);
        return false;
    };
    let stands_for = stands_for(machine, leaves, now);
    if stands_for.is_none() && !is_burst() {
        return false;
    }
    let bound = match machine.eyes.look() {
        Whereabouts::Running => return false,
        Whereabouts::InCall(number) if waits_for_lock(number) => REVOKE_LOCK_NS,
        Whereabouts::InCall(_) if is_wanted(p) => 0,
        Whereabouts::InCall(_) => REVOKE_NS,
        Whereabouts::Faulting => REVOKE_FAULT_NS,
        Whereabouts::Unknown => REVOKE_BLIND_NS,
    };
    stands_for.unwrap_or(0) >= bound && revoke(p, machine, leaves)
}

/// Whether what sleeps in this call waits for a lock: a futex, or the lock of the process's mappings.
fn waits_for_lock(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_futex
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mremap
            | libc::SYS_mprotect
            | libc::SYS_madvise
            | libc::SYS_brk
    )
}

/// For how long the machine's clock has stood, and it has not left the runtime; `None` at the first
/// look. Under `REVOKER`.
fn stands_for(machine: &Machine, leaves: u32, now: u64) -> Option<u64> {
    let watch = &machine.watch;
    let cpu = machine.eyes.cpu_time().unwrap_or(0);
    let is_same = watch.leaves.replace(u64::from(leaves)) == u64::from(leaves)
        && watch.cpu_ns.replace(cpu) == cpu
        && watch.since.get() != 0;
    if !is_same {
        watch.cpu_ns.set(cpu);
        watch.since.set(now);
        return None;
    }
    Some(now.saturating_sub(watch.since.get()))
}

/// Takes the processor of a sleeping thread and hands it on.
fn revoke(p: &'static Processor, machine: &'static Machine, leaves: u32) -> bool {
    let taken = take_from_sleeper(p, machine, leaves);
    if taken {
        machine.watch.since.set(0);
        machine.eyes.close();
        SCHEDULER.counts.undeclared_hand_offs.add_shared();
        hand_off(p);
    }
    taken
}

/// R1 to R4 of `Ownership`. The caller is the one revoker and has seen the machine asleep. True: the
/// processor is the caller's.
///
/// Of an unseen thread (`Whereabouts::Unknown`) the barrier orders what a look at a sleeping one
/// does, so that a machine inside the runtime keeps its processor; one outside may compute after
/// all, and does so without a processor until it enters the runtime or is stopped, as one that
/// comes back from a call.
fn take_from_sleeper(p: &'static Processor, machine: &'static Machine, leaves: u32) -> bool {
    if !machine.ownership.request() {
        return false;
    }
    let whereabouts = machine.eyes.look();
    let is_asleep = match whereabouts {
        Whereabouts::Running => false,
        Whereabouts::InCall(_) | Whereabouts::Faulting => machine.eyes.is_asleep(),
        Whereabouts::Unknown => barrier::heavy() || warn_of_blindness(),
    };
    let unchanged =
        machine.progress() == Some(leaves) && p.machine().is_some_and(|m| std::ptr::eq(m, machine));
    if !(is_asleep && unchanged) {
        machine.ownership.withdraw();
        return false;
    }
    if whereabouts != Whereabouts::InCall(libc::SYS_futex) {
        return take(p, machine);
    }
    // Noted first: once it is taken the machine may come back.
    note_futex(machine, true);
    let is_taken = take(p, machine);
    if !is_taken {
        note_futex(machine, false);
    }
    is_taken
}

/// R4, with what a trace has to say of it before the machine says more.
fn take(p: &'static Processor, machine: &'static Machine) -> bool {
    machine.lane.lend();
    let is_taken = machine.ownership.take();
    if is_taken && trace::is_on() {
        trace::taken_from_sleeper(p, machine);
    }
    machine.lane.take_back();
    is_taken
}

/// Neither file nor barrier. Always false.
#[cold]
fn warn_of_blindness() -> bool {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed; only the first one prints.
    if !WARNED.swap(true, Relaxed) {
        os::write_all(
            2,
            b"gosched: /proc can't be read and membarrier is refused; blocking calls that are not \
              declared hold up their processor\n",
        );
    }
    false
}

fn note_futex(machine: &Machine, is_lost: bool) {
    // ORDERING: Relaxed; published by the taking, or the revoker's alone.
    machine.lost_in_futex.store(is_lost, Relaxed);
    if is_lost {
        last_spare::futex_lost();
    } else {
        last_spare::futex_regained();
    }
}

/// For whoever stops the world: takes the processor if the thread is asleep. Under `REVOKER`.
pub(crate) fn take_if_asleep(
    p: &'static Processor,
    machine: &'static Machine,
    leaves: u32,
) -> bool {
    let lasts = stands_for(machine, leaves, os::monotonic_ns()).unwrap_or(0);
    let is_blind = machine.eyes.look() == Whereabouts::Unknown;
    !(is_blind && lasts < REVOKE_BLIND_NS) && take_from_sleeper(p, machine, leaves)
}

pub(super) fn forget_samples() {
    for m in SCHEDULER.processors().filter_map(Processor::machine) {
        m.watch.since.set(0);
        m.watch.call_since.set(0);
    }
}

/// Machines looked at in a round because they may run without a processor.
const WITHOUT_PER_ROUND: u32 = 16;

/// A machine that lost its processor while it slept in the kernel runs user code without one after
/// that, until it enters the runtime; one that computes is made to. (What is declared as a call may
/// compute too, which no signal stops.) `next` is where to go on.
pub(super) fn stop_those_without_processor(next: &mut u32) -> usize {
    if !preempt::is_on() || SCHEDULER.counts.undeclared_hand_offs.get() == 0 {
        return 0;
    }
    let (mut count, all) = (0, SCHEDULER.machine_count());
    for _ in 0..WITHOUT_PER_ROUND.min(all) {
        *next = if *next + 1 < all { *next + 1 } else { 0 };
        let Some(machine) = SCHEDULER.machine(*next) else { continue };
        if machine.ownership.is_lost() && !is_in_lost_call(machine) && has_come_back(machine) {
            preempt::request(machine);
            count += 1;
        }
    }
    count
}

/// Whether a machine that has lost its processor lost it in a declared call; a hint.
fn is_in_lost_call(machine: &Machine) -> bool {
    machine.current().is_some_and(|g| g.status.get() == Status::Syscall)
}

/// Whether a machine that was asleep when it lost its processor computes by now. Its clock is asked
/// first: there may be thousands of them, all asleep still, and fewer files.
fn has_come_back(machine: &Machine) -> bool {
    let cpu = machine.eyes.cpu_time().unwrap_or(0);
    if machine.watch.cpu_ns.replace(cpu) == cpu {
        return false;
    }
    let computes = matches!(machine.eyes.look(), Whereabouts::Running | Whereabouts::Unknown);
    machine.eyes.close();
    computes
}
