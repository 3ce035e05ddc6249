//! A record of everything that the scheduler does, for the test that checks it.
//!
//! Only with the feature `history`, which nothing but that test's program asks for; without it every
//! call here is empty. Records have a fixed size and lie in memory that is mapped at the start. One
//! counter for all threads orders them: a number is taken inside the transition, by whoever owns what
//! changes, so two records about one goroutine, or one processor, are in the order of the changes.
//!
//! What a record says of other things may be a moment old or early. The checker therefore knows when
//! a machine is inside the runtime (from its first record to [`Kind::Left`] or [`Kind::Sleep`]) and
//! judges what nobody inside can still be about to mend.

#[cfg(any(test, feature = "history"))]
mod checker;
mod recorder;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "history"))]
pub use checker::{Broken, Summary};
pub(crate) use recorder::start;

use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::processor::Processor;
use gosched_fiber::host;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A goroutine was made. It is in no queue yet.
    Created = 1,
    /// It was woken. It is in no queue yet.
    Ready,
    /// It is about to run. `detail`: the processor's round.
    Run,
    /// It gives way. It is in no queue yet.
    Yielded,
    /// It waits. `detail`: the reason.
    Park,
    /// It has ended.
    Exit,
    /// It begins a declared call.
    EnterCall,
    /// It is back from there.
    ExitCall,
    /// It was taken from its queue, and waits for a stack outside of all queues.
    WaitFiber,
    /// It has its stack. It is in no queue yet.
    GotFiber,
    /// A machine begins to look for a goroutine. `detail`: the processor's rounds so far.
    Search,
    /// It has looked at one source. `detail`: the [`Source`]; the goroutine, or 0.
    Tried,
    /// A processor is among the idle.
    Idle,
    /// A processor is at rest, see `rest`: neither idle nor in use.
    Rest,
    /// A processor is on its way: in nobody's hands, and not among the idle.
    Transit,
    /// The machine holds the processor.
    Acquired,
    /// The processor goes out of service.
    Retired,
    /// The machine has seen that its processor was taken from it.
    Lost,
    /// The machine leaves the runtime.
    Left,
    /// The machine is about to sleep and looks at nothing any more. `detail`: where.
    Sleep,
    /// The machine in the poller is awake.
    Awake,
    /// Somebody is about to ring the poller's bell.
    Ringing,
    /// `detail`: the number of the poll that the bell was rung for, or 0 if it was not.
    Rung,
    /// The machine in the poller does not listen to the bell any more. `detail`: the poll's number.
    PollEnd,
    /// The machine is about to sleep for a short time, and looks at next slots again then.
    Lookout,
    /// The goroutine is about to be put into the processor's next slot.
    Next,
    /// The machine has moved runnable goroutines where others could not see them for a moment, or
    /// was the last one that searched.
    Moved,
    /// The machine wakes another one, if a processor is idle and nobody searches.
    Considered,
    /// A thread that is no machine takes goroutines out of a queue.
    Begun,
    /// It has put all of them into queues again.
    Finished,
    /// A thread that is no machine has done what its last records began.
    Done,
}

/// The detail of [`Kind::Sleep`] in the poller.
pub(crate) const SLEEP_IN_POLLER: u32 = 1;

/// Where a machine looks for a goroutine, in the order in which it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Source {
    /// Due timers; they go to the ring.
    Timers,
    /// What the monitor wants to run.
    Urgent,
    /// The ring's head, every 61st round, if the global queue was preferred to it before.
    RingPassed,
    /// The global queue, in the same round.
    GlobalFirst,
    /// Files, in the same round.
    NetworkFirst,
    /// The ring's head, in the same round.
    RingFirst,
    /// The next slot, then the ring.
    Local,
    /// The global queue.
    Global,
    /// Files.
    Network,
    /// Other processors.
    Steal,
}

/// A transition of `g`, made by the calling thread.
#[inline(always)]
pub(crate) fn goroutine(kind: Kind, g: GRef, detail: u32) {
    if cfg!(feature = "history") {
        recorder::put(kind, recorder::actor(), recorder::NO_PROCESSOR, g.id(), detail);
    }
}

/// `g` is about to run on `machine`.
#[inline(always)]
pub(crate) fn run(machine: &Machine, g: GRef) {
    if cfg!(feature = "history") {
        let (id, round) =
            machine.processor().map_or((recorder::NO_PROCESSOR, 0), |p| (p.id, p.tick()));
        recorder::put(Kind::Run, machine.id, id, g.id(), round);
    }
}

/// What `machine` does about no particular goroutine.
#[inline(always)]
pub(crate) fn machine(kind: Kind, machine: &Machine, detail: u32) {
    if cfg!(feature = "history") {
        recorder::put(kind, machine.id, recorder::NO_PROCESSOR, 0, detail);
    }
}

/// `machine` has looked at `source`.
#[inline(always)]
pub(crate) fn tried(machine: &Machine, source: Source, found: Option<GRef>) -> Option<GRef> {
    if cfg!(feature = "history") {
        let id = found.map_or(0, |g| g.id());
        recorder::put(Kind::Tried, machine.id, recorder::NO_PROCESSOR, id, source as u32);
    }
    found
}

/// `p` goes from hand to hand, by the calling thread.
#[inline(always)]
pub(crate) fn processor(kind: Kind, p: &Processor) {
    if cfg!(feature = "history") {
        recorder::put(kind, recorder::actor(), p.id, 0, 0);
    }
}

/// The machine is about to announce itself in the poller.
#[inline(always)]
pub(crate) fn poll_begins() {
    if cfg!(feature = "history") {
        recorder::count_poll();
    }
}

/// It has withdrawn.
#[inline(always)]
pub(crate) fn poll_ends(machine: &Machine) {
    if cfg!(feature = "history") {
        self::machine(Kind::PollEnd, machine, recorder::current_poll());
    }
}

/// The caller has claimed the bell, or has not, and rung it.
#[inline(always)]
pub(crate) fn rung(claimed: Option<u32>) {
    if cfg!(feature = "history") {
        anyone(Kind::Rung, claimed.unwrap_or(0));
    }
}

/// The poll that the caller has claimed the bell of just now: before it rings.
#[inline(always)]
pub(crate) fn claimed_poll() -> u32 {
    if cfg!(feature = "history") { recorder::current_poll() } else { 0 }
}

/// Something that the calling thread does, whoever it is.
#[inline(always)]
pub(crate) fn anyone(kind: Kind, detail: u32) {
    if cfg!(feature = "history") {
        recorder::put(kind, recorder::actor(), recorder::NO_PROCESSOR, 0, detail);
    }
}

/// `g` is about to be put into the next slot of `p`.
#[inline(always)]
pub(crate) fn next(p: &Processor, g: GRef) {
    if cfg!(feature = "history") {
        recorder::put(Kind::Next, recorder::actor(), p.id, g.id(), 0);
    }
}

/// The caller has done what it began, if it is no machine: machines leave.
#[inline(always)]
pub(crate) fn done_outside() {
    if cfg!(feature = "history") && host::current_machine().is_null() {
        anyone(Kind::Done, 0);
    }
}

/// Checks everything that was recorded so far. All is to be quiet.
///
/// # Errors
/// What is wrong.
#[cfg(feature = "history")]
pub fn check_history() -> Result<Summary, Broken> {
    checker::check(&recorder::records(), crate::procs())
}
