//! Processors at rest: where the kernel gives two machines one CPU between them, one of them has it
//! alone.
//!
//! With more threads that are ready to run than CPUs, another process's among them, the kernel may keep
//! two machines on one CPU. They get no more of it than one would, and each is put off for the other's
//! slice, a millisecond or more, with a goroutine in its hands and others in its ring. The monitor sees
//! that (`monitor/rest`) and asks the holder of a processor to put it to rest: what lies in its ring
//! goes to the queue of all, and the machine sleeps.
//!
//! A processor at rest is in nobody's hands and not among the idle, so that nobody is woken for it, and
//! the others count as all there are. Timers left on it are run as those of idle ones are. The monitor
//! ends the rest, and whoever stops the world.
//!
//! Invariant
//! * R1. At least one processor in service is neither at rest nor asked to be, so what lies in queues
//!   has somebody to run it, or to look at it before it goes idle (`idle`, I1).

use crate::attention::{self, REST};
use crate::machine::{Inside, Machine};
use crate::monitor::REVOKER;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{history, idle, world};
use std::sync::atomic::Ordering::Relaxed;

/// Asks the holders of `count` processors to put them to rest; fewer than there are in service. Under
/// the monitor's `REVOKER`, and not while the world is stopped.
pub(crate) fn ask(count: usize) {
    SCHEDULER.want_resting(count);
    let procs = SCHEDULER.procs();
    for id in procs.saturating_sub(count as u32).max(1)..procs {
        attention::ask(SCHEDULER.processor(id), REST);
    }
}

/// Nobody is to rest any more, and who rests is idle. As [`ask`].
pub(crate) fn end() {
    take_back();
    if SCHEDULER.end_rest() {
        idle::recheck_after_release();
    }
}

/// As [`end`], for whoever stops the world and takes the idle processors next.
pub(crate) fn end_for_stop() {
    take_back();
    SCHEDULER.end_rest();
}

fn take_back() {
    for p in SCHEDULER.processors() {
        forget(p);
    }
}

fn forget(p: &Processor) {
    // ORDERING: Relaxed; a request carries no data.
    if p.attention.load(Relaxed) & REST != 0 {
        p.attention.fetch_and(!REST, Relaxed);
    }
}

/// The holder of `p` was asked to put it to rest, and sleeps until it is needed; with `p` still in its
/// hands if that is not wanted any more.
pub(crate) fn go(machine: &'static Machine, p: &'static Processor) {
    forget(p);
    // SAFETY: this machine holds `p`, inside the runtime.
    unsafe { world::empty(p) };
    history::anyone(history::Kind::Moved, 0);
    machine.part_with(p);
    p.set_machine(None);
    if !SCHEDULER.give_resting(p) {
        idle::acquire(machine, p);
        idle::wake_one();
        return;
    }
    SCHEDULER.counts.rests.add_shared();
    // The others may have become idle before they could see what was in the ring.
    idle::wake_one();
    // After that fence, see `give_urgent` in `monitor/placing`.
    if !p.urgent.is_empty() {
        let mut late = p.urgent.take_all().into_list();
        while let Some(g) = late.pop_front() {
            SCHEDULER.global.push_back(g);
        }
        history::anyone(history::Kind::Moved, 0);
        idle::wake_one();
    }
    idle::sleep_without_processor(machine);
}

/// As the monitor does: up to `count` processors are put to rest, fewer than there are; 0 ends it. For
/// tests, by goroutines.
#[doc(hidden)]
pub fn put_to_rest(count: usize) {
    let Some(inside) = Inside::enter() else { return };
    {
        let _one_revoker = REVOKER.lock();
        if !world::is_stopping() {
            end();
            if count > 0 && count < crate::procs() {
                ask(count);
            }
        }
    }
    inside.leave();
}

/// How many processors are at rest. For tests.
#[doc(hidden)]
#[must_use]
pub fn resting() -> usize {
    SCHEDULER.resting_count()
}
