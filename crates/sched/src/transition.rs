//! The state transitions of a goroutine, each in one function, all of them here.
//!
//! This is where traces, metrics, profiles and debug checks hang: whatever observes goroutines
//! observes these calls and nothing else.
//!
//! Order, for those who will record it: `ready` runs before the goroutine is visible to others;
//! `park`, `yielded` and `exit` on the old side before the switch; `run` on the old side just
//! before the switch, in the buffer of the machine that will run it. What leaves or runs by a switch
//! is traced there (see `switch`), so that the direct one costs nothing when no trace is on.

use crate::goroutine::{GRef, Marked};
use crate::history::{self, Kind};
use crate::machine::Machine;
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::{latency, trace};

/// Dead -> Runnable, by its spawner.
#[inline]
pub(crate) fn created(g: GRef) {
    created_untraced(g);
    if trace::is_on() {
        trace::created(g);
    }
}

/// As [`created`], on a machine that holds `p`.
#[inline]
pub(crate) fn created_on(machine: &Machine, p: &Processor, g: GRef) {
    created_untraced(g);
    if trace::is_on() {
        trace::created_on(machine, p, g);
    }
}

/// As [`created`], where the processor's attention says that no trace is on.
#[inline]
pub(crate) fn created_untraced(g: GRef) {
    g.status.created();
    latency::becomes_runnable(g);
    history::goroutine(Kind::Created, g, 0);
}

/// Runnable -> Running, by the machine that took it from a queue. Whether it runs on that machine's
/// own thread-locals, which are to be loaded then.
#[inline]
#[must_use]
pub(crate) fn run(machine: &Machine, g: GRef) -> bool {
    g.status.run();
    history::run(machine, g);
    machine.set_current(Some(g));
    match g.marked() {
        Marked::Not => false,
        Marked::SharesTls => true,
        Marked::Stamped => {
            latency::runs(machine, g);
            g.shares_tls()
        }
    }
}

/// Running -> Runnable, by itself.
#[inline]
pub(crate) fn yielded(g: GRef) {
    history::goroutine(Kind::Yielded, g, 0);
    g.status.yielded();
    latency::becomes_runnable(g);
}

/// As [`yielded`], in a signal handler, which does not switch: with a processor or without.
pub(crate) fn yielded_in_place(machine: &Machine, g: GRef) {
    if machine.processor().is_none() {
        return yielded_without_processor(machine, g);
    }
    yielded(g);
    if trace::is_on() {
        trace::left(machine, g);
    }
}

/// As [`yielded`], on a machine that has lost its processor in a call.
pub(crate) fn yielded_without_processor(machine: &Machine, g: GRef) {
    trace::call_ends_without_processor(machine, g, || yielded(g));
}

/// Running -> Waiting, by itself.
#[inline]
pub(crate) fn park(g: GRef, reason: WaitReason) {
    // A dump may have stamped it while it was being woken the last time.
    g.stop_waiting();
    g.set_reason(reason);
    g.end_slice_to_wait();
    history::goroutine(Kind::Park, g, reason as u32);
    g.status.park();
}

/// Waiting -> Runnable, by the waker that won.
#[inline]
pub(crate) fn ready(g: GRef) {
    if trace::is_on() {
        trace::ready(g);
    }
    ready_untraced(g);
}

/// As [`ready`], on a machine that holds a processor.
#[inline]
pub(crate) fn ready_on(machine: &Machine, g: GRef) {
    if trace::is_on() {
        trace::ready_on(machine, g);
    }
    ready_untraced(g);
}

/// As [`ready`], where the processor's attention says that no trace is on.
#[inline]
pub(crate) fn ready_untraced(g: GRef) {
    g.stop_waiting();
    history::goroutine(Kind::Ready, g, 0);
    latency::becomes_runnable(g);
    g.status.ready();
}

/// Running -> Dead, by itself.
#[inline]
pub(crate) fn exit(p: &Processor, g: GRef) {
    history::goroutine(Kind::Exit, g, 0);
    // Nothing for the next life.
    g.end_slice();
    p.counters.ended.add();
    g.status.exit();
}

/// Running -> Syscall, by itself.
#[inline]
pub(crate) fn enter_call(machine: &Machine, g: GRef) {
    history::goroutine(Kind::EnterCall, g, 0);
    if trace::is_on() {
        trace::call_begins(machine, g);
    }
    g.status.enter_call();
}

/// Syscall -> Running, by itself: with or without a processor.
#[inline]
pub(crate) fn exit_call(g: GRef) {
    history::goroutine(Kind::ExitCall, g, 0);
    g.status.exit_call();
}
