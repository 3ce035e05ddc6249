//! Interrupting blocked system calls: the last resort.
//!
//! Every machine there may be is blocked, goroutines are runnable, one of them perhaps the one that
//! all the others wait for, and no processor has a machine. Then one machine's call is ended by a
//! signal; its goroutine goes to the end of the queue and repeats the call when it has its turn.
//!
//! Not every call repeats itself: those with a time-out return EINTR to user code (see
//! [`preempt`]). Hence the order: first more machines, which the starter sees to and which is given
//! time; then a machine in a futex without a time-out, since that call restarts; then any other; then
//! one of which nobody knows where it is, which the signal's handler finds out.
//!
//! Where a filter refuses signals there is no such resort. That is found out when threads run out, by
//! a signal that does nothing; from then on the rule of [`last_spare`](crate::last_spare) holds, and
//! if all block nevertheless, there is a word about it.
//!
//! A goroutine that has forbidden to be stopped is interrupted as well: it waits, for a lock of the
//! loader perhaps, and holds nothing longer than it would have done anyway.

use crate::machine::Machine;
use crate::monitor::Noted;
use crate::observe::Whereabouts;
use crate::scheduler::SCHEDULER;
use crate::{fleet, idle, preempt};
use gosched_base::os::{self, Errno};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// How long processors wait for a machine before a call is interrupted, when there may be no more
/// machines; and between two interruptions.
const AT_LIMIT_NS: u64 = 1_000_000;
/// The same when there may be more: making a thread takes 0.1 ms, unless the system refuses or a
/// lock that it needs is held by code that waits.
const BELOW_LIMIT_NS: u64 = 20_000_000;
/// So often in that time there is a look whether it is over.
const LOOKS: u64 = 8;
/// So long a machine has to take its signal before another is asked.
const ANSWER_NS: u64 = 100_000_000;
/// Machines looked at for a good one.
const LOOKS_MAX: u32 = 256;

/// Since when orders have been waiting; 0 if there are none.
static SINCE: Noted = Noted::new();
/// The machine that was asked last, by number plus one, and when.
static ASKED: Noted = Noted::new();
static ASKED_AT: Noted = Noted::new();
/// The machine to begin with: others come first the next time.
static NEXT: Noted = Noted::new();

/// What is known of signals to our threads: nothing yet, or one of the others.
static SIGNALS: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ALLOWED: u8 = 1;
const REFUSED: u8 = 2;

/// Whether the system lets threads of ours be signalled. Asked when threads have run out.
fn can_signal() -> bool {
    // ORDERING: Relaxed for both; whoever finds it out, finds the same.
    match SIGNALS.load(Relaxed) {
        UNKNOWN => {
            let is_refused = os::tgsigqueue(os::gettid(), 0, 0).is_err();
            SIGNALS.store(if is_refused { REFUSED } else { ALLOWED }, Relaxed);
            !is_refused
        }
        known => known == ALLOWED,
    }
}

/// Whether a blocked call can be ended by signal. Not where thread-locals are shared: the goroutine
/// could go on on this thread only, which would be no more use to others (`preempt::decide`).
pub(crate) fn can_end_calls() -> bool {
    is_meant_to() && can_signal()
}

fn is_meant_to() -> bool {
    preempt::is_on() && SCHEDULER.settled.get().is_some_and(|settled| !settled.shares_tls)
}

/// Interrupts a call if nothing else helps. Returns within what time to look again, if that may come
/// to be so.
pub(crate) fn as_last_resort(now: u64) -> Option<u64> {
    if !is_stuck() {
        SINCE.set(0);
        return None;
    }
    let patience = patience_ns();
    let since = SINCE.get();
    if since == 0 {
        SINCE.set(now);
    } else if now.saturating_sub(since) >= patience && has_answered(now) {
        SINCE.set(now);
        if !can_signal() {
            warn_of_refusals();
        } else if let Some(machine) = choose() {
            ASKED.set(u64::from(machine.id) + 1);
            ASKED_AT.set(now);
            // A thread that has just ended has no machine that blocks.
            if preempt::force(machine).is_err_and(|error| error != Errno(libc::ESRCH)) {
                // ORDERING: Relaxed; see `can_signal`.
                SIGNALS.store(REFUSED, Relaxed);
            }
        }
    }
    Some(patience / LOOKS)
}

/// No thread can be made, and none can be interrupted.
#[cold]
fn warn_of_refusals() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed; only the first one prints.
    if !WARNED.swap(true, Relaxed) {
        os::write_all(
            2,
            b"gosched: every thread blocks, there can't be more, and the system refuses signals to \
              them; goroutines wait until one of the calls ends by itself. More threads (maxthreads, \
              `ulimit -u`, pids.max) or a filter that allows rt_tgsigqueueinfo would help\n",
        );
    }
}

/// Whether the machine that was asked last has taken the signal: under load it may wait for a CPU.
fn has_answered(now: u64) -> bool {
    let Some(number) = ASKED.get().checked_sub(1) else { return true };
    let waits = SCHEDULER.machine(number as u32).is_some_and(Machine::is_forced_asked);
    !waits || now.saturating_sub(ASKED_AT.get()) >= ANSWER_NS
}

/// Processors wait for machines, goroutines for processors, and nobody runs any.
fn is_stuck() -> bool {
    is_meant_to()
        && fleet::has_orders()
        && SCHEDULER.processors().all(|p| p.machine().is_none())
        && idle::is_work_in_sight()
}

fn patience_ns() -> u64 {
    let limit = SCHEDULER.settled.get().map_or(u32::MAX, |settled| settled.threads_max);
    if fleet::live() >= limit { AT_LIMIT_NS } else { BELOW_LIMIT_NS }
}

/// A machine asleep in a futex without a time-out, else one in any other call, else one of which the
/// kernel does not tell (no /proc, or a process that has changed its user).
fn choose() -> Option<&'static Machine> {
    let all = SCHEDULER.machine_count();
    let first = (NEXT.get() as u32).min(all);
    let (mut other, mut unseen) = (None, None);
    for number in (first..all).chain(0..first).take(LOOKS_MAX as usize) {
        let Some(machine) = SCHEDULER.machine(number).filter(|m| m.ownership.is_lost()) else {
            continue;
        };
        let (call, whereabouts) = (machine.eyes.call(), machine.eyes.look());
        machine.eyes.close();
        match call {
            Some(call) if restarts(call) => {
                NEXT.set(u64::from(number) + 1);
                return Some(machine);
            }
            Some(_) => other = other.or(Some(machine)),
            None if whereabouts == Whereabouts::Unknown => unseen = unseen.or(Some(machine)),
            None => {}
        }
    }
    let chosen = other.or(unseen);
    NEXT.set(chosen.map_or(0, |m| u64::from(m.id) + 1));
    chosen
}

/// Whether the call, a number and its arguments, goes on by itself after a signal.
fn restarts([number, _, _, _, timeout, ..]: [u64; 7]) -> bool {
    number == libc::SYS_futex as u64 && timeout == 0
}
