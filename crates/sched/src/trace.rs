//! Execution traces in Go's format: the events.
//!
//! Every function here belongs to one transition of a goroutine or a processor, and is called where
//! that is. What was said last of each of them is noted with it ([`Word`]), by its owner of the moment:
//! in which generation, in which status, and how often it changed hands. So the first event of a
//! generation that names it can state what it was before, as the format wants it, and what was changed
//! while nobody looked (a plain thread wakes a goroutine just when a trace begins) is made up for when
//! it runs.
//!
//! Costs when off: on the direct switch nothing, since a trace sets the `TRACE` bit of every
//! processor's attention word, which is looked at anyway; one load elsewhere.
//!
//! * Memory is in [`chunk`], who writes where in [`lane`] and [`outside`], stacks in [`sites`], words in [`words`].
//! * A trace begins and ends in [`session`], with what is stated in [`states`], and a thread of its own
//!   collects it ([`collector`]).
//!
//! Goroutines that a plain thread spawns, or a timer on the monitor, appear when they first run: the
//! format knows no creation outside of processors.
//!
//! Length: one function for each transition, which are many.
//!
//! Rejected: records of a fixed size that a thread turns into the format later: three times the memory
//! traffic, and a second CPU. One order for all events (a counter): the line that everybody writes.

mod chunk;
mod clock;
mod collector;
mod flight;
mod lane;
mod outside;
#[cfg(feature = "frames")]
pub(crate) mod samples;
mod session;
mod sites;
mod states;
mod user;
mod word;
mod words;

pub use flight::FlightRecorder;
pub(crate) use lane::Lane;
pub(crate) use session::mark_new_processors;
pub use session::{TraceError, start, stop};
pub use user::{Region, Task, is_enabled, log};

use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::slab;
use gosched_base::{CachePadded, Parker};
use gosched_fiber::host;
use gosched_protocol::Status;
use gosched_trace_format::{GoStatus, Kind, NO_THREAD, ProcStatus};
use lane::Section;
use sites::{Root, know_root, root};
use std::panic::Location;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use word::Word;

/// The generation that is being written; 0: no trace.
static GENERATION: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(0));
/// The first one of this trace.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// Somebody who runs has yet to say how many processors there are.
static MUST_TELL_PROCS: AtomicBool = AtomicBool::new(false);
/// There was no memory for an event: the trace ends there.
static HAS_OVERRUN: AtomicBool = AtomicBool::new(false);
/// Where the collector sleeps.
static COLLECTOR: Parker = Parker::new();

/// Why a goroutine gives way, in [`Lane::set_why`].
pub(crate) const WHY_ASKED: u8 = 1;
pub(crate) const WHY_STOPPED: u8 = 2;

/// Whether a trace is on.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // To count what is left of traces when none is on, see HACKING.md.
    if cfg!(gosched_no_trace) {
        return false;
    }
    // ORDERING: Relaxed; who writes looks again, see `lane`.
    GENERATION.load(Relaxed) != 0
}

/// The collector has to come: there is much to collect, or no memory left. In the latter case
/// whatever comes after what is lost is lost too.
#[cold]
fn overrun(is_lost: bool) {
    if is_lost {
        // ORDERING: Relaxed for both; as for any change of the generation.
        HAS_OVERRUN.store(true, Relaxed);
        GENERATION.store(0, Relaxed);
    }
    COLLECTOR.wake();
}

#[inline(always)]
fn word_of(g: GRef) -> &'static AtomicU64 {
    &slab::name_of(g).traced
}

#[inline(always)]
fn thread_of(machine: &Machine) -> u64 {
    u64::from(machine.tid())
}

/// Statements about goroutines and processors, in an open section.
impl Section<'_> {
    /// States what `g` was before its next event, once in a generation. `None`: the trace does not
    /// know it.
    #[inline(always)]
    fn touch_goroutine(&mut self, g: GRef, thread: u64) -> Option<Word> {
        let word = Word::read(word_of(g));
        if word.generation() == self.generation {
            return Some(word);
        }
        self.aside(|section| section.state_goroutine(g, word, thread))
    }

    #[cold]
    #[inline(never)]
    fn state_goroutine(&mut self, g: GRef, word: Word, thread: u64) -> Option<Word> {
        if !word.is_known() {
            return None;
        }
        let has_thread =
            word.status() == GoStatus::Running as u64 || word.status() == GoStatus::Syscall as u64;
        let thread = if has_thread { thread } else { NO_THREAD };
        self.put(Kind::GoStatus, &[g.id(), thread, word.status()]);
        let word = Word::new(self.generation, word.status());
        word.write(word_of(g));
        Some(word)
    }

    #[inline(always)]
    fn set_goroutine(&self, g: GRef, word: Word, status: GoStatus) {
        word.with_status(status as u64).write(word_of(g));
    }

    /// As [`touch_goroutine`](Section::touch_goroutine), `None` too unless that is its status.
    #[inline(always)]
    fn touch_if(&mut self, g: GRef, thread: u64, status: GoStatus) -> Option<Word> {
        let word = Word::read(word_of(g));
        if word.says(self.generation, status as u64) {
            return Some(word);
        }
        self.aside(|section| section.state_if(g, thread, status))
    }

    #[cold]
    #[inline(never)]
    fn state_if(&mut self, g: GRef, thread: u64, status: GoStatus) -> Option<Word> {
        self.touch_goroutine(g, thread).filter(|word| word.status() == status as u64)
    }

    /// As [`touch_goroutine`](Section::touch_goroutine). One that the trace does not know is idle.
    #[inline(always)]
    fn touch_processor(&mut self, p: &Processor) -> Word {
        let word = Word::read(&p.traced);
        if word.generation() == self.generation {
            word
        } else {
            self.aside(|section| section.state_processor(p, word))
        }
    }

    #[cold]
    #[inline(never)]
    fn state_processor(&mut self, p: &Processor, word: Word) -> Word {
        let status = if word.is_known() { word.status() } else { ProcStatus::Idle as u64 };
        self.put(Kind::ProcStatus, &[p.id.into(), status]);
        let word = Word::new(self.generation, status);
        word.write(&p.traced);
        word
    }

    fn set_processor(&self, p: &Processor, word: Word, status: ProcStatus) {
        word.with_status(status as u64).write(&p.traced);
    }

    /// `g` is made by `parent`, or nobody that runs here.
    fn create(&mut self, g: GRef, parent: Option<GRef>) {
        let site = g.origin().map(|(site, _)| site);
        let by = match (parent, site) {
            (Some(parent), Some(site)) => Root::at(parent, site).stack(words::FUNCTION),
            _ => 0,
        };
        self.put_here(Kind::GoCreate, &[g.id(), know_root(g).stack(words::FUNCTION), by]);
        let word = Word::new(self.generation, 0);
        self.set_goroutine(g, word, GoStatus::Runnable);
    }

    /// `g` is woken, by that goroutine if it was one.
    #[inline(always)]
    fn unblock(&mut self, g: GRef, waker: Option<GRef>) {
        let Some(mut word) = self.touch_if(g, NO_THREAD, GoStatus::Waiting) else { return };
        let by = match waker {
            // It runs, so the trace knows it.
            Some(waker) => root(waker).stack(words::WAKES),
            None => Root::NONE.stack(words::WOKEN_OUTSIDE),
        };
        word = word.next();
        self.put_here(Kind::GoUnblock, &[g.id(), word.seq(), by]);
        self.set_goroutine(g, word, GoStatus::Runnable);
    }

    /// `g` leaves `machine`, which holds a processor; whether that was said.
    #[inline(always)]
    fn leave_goroutine(&mut self, machine: &Machine, g: GRef) -> bool {
        let why = machine.lane.take_why();
        let Some(word) = self.touch_if(g, thread_of(machine), GoStatus::Running) else {
            return false;
        };
        match g.status.get() {
            Status::Waiting => {
                let reason = g.reason();
                let stack = root(g).stack(words::What::waits(reason));
                self.put_here(Kind::GoBlock, &[words::reason(reason), stack]);
                self.set_goroutine(g, word, GoStatus::Waiting);
            }
            Status::Runnable => {
                let (reason, what) = match why {
                    WHY_ASKED => (words::PREEMPTED, words::ASKED),
                    WHY_STOPPED => (words::PREEMPTED, words::STOPPED),
                    _ => (words::GOSCHED, words::YIELDS),
                };
                self.put_here(Kind::GoStop, &[reason, root(g).stack(what)]);
                self.set_goroutine(g, word, GoStatus::Runnable);
            }
            _ => {
                self.put_here(Kind::GoDestroy, &[]);
                forget(g);
            }
        }
        true
    }

    /// `g` begins to run on the lane's machine, when another one has just left it.
    #[inline(always)]
    fn start_next(&mut self, g: GRef) {
        let word = Word::read(word_of(g));
        if !word.says(self.generation, GoStatus::Runnable as u64) {
            return self.aside(|section| section.start_goroutine(g));
        }
        let word = word.next();
        self.put_along(Kind::GoStart, &[g.id(), word.seq()]);
        self.set_goroutine(g, word, GoStatus::Running);
        self.tell_procs();
    }

    /// `g` begins to run on the lane's machine.
    #[inline(never)]
    fn start_goroutine(&mut self, g: GRef) {
        let mut word = match self.touch_goroutine(g, NO_THREAD) {
            Some(word) if word.status() != GoStatus::Waiting as u64 => word,
            known => self.aside(|section| section.make_up_for(g, known)),
        };
        word = word.next();
        self.put_here(Kind::GoStart, &[g.id(), word.seq()]);
        self.set_goroutine(g, word, GoStatus::Running);
        self.tell_procs();
    }

    /// Says how many processors there are, if nobody has yet.
    #[inline(always)]
    fn tell_procs(&mut self) {
        // ORDERING: Relaxed look; whoever wins the swap tells.
        if MUST_TELL_PROCS.load(Relaxed) {
            self.aside(|section| section.tell_procs_now());
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_procs_now(&mut self) {
        // ORDERING: Relaxed; as above.
        if MUST_TELL_PROCS.swap(false, Relaxed) {
            self.put(Kind::ProcsChange, &[crate::procs() as u64, 0]);
        }
    }

    /// What nobody told of a goroutine that is about to run.
    #[cold]
    #[inline(never)]
    fn make_up_for(&mut self, g: GRef, known: Option<Word>) -> Word {
        let Some(word) = known else {
            self.create(g, None);
            return Word::read(word_of(g));
        };
        // It was woken while the trace began.
        let word = word.next();
        self.put(Kind::GoUnblock, &[g.id(), word.seq(), 0]);
        word
    }

    /// The call of `g` on `machine` is over, and the processor that it began with is gone.
    fn end_call_blocked(&mut self, machine: &Machine, g: GRef) {
        if let Some(word) = self.touch_goroutine(g, thread_of(machine)) {
            self.put(Kind::GoSyscallEndBlocked, &[]);
            self.set_goroutine(g, word, GoStatus::Runnable);
        }
    }

    /// The goroutine that runs on `machine` enters a call.
    fn begin_call(&mut self, machine: &Machine, p: &Processor, g: GRef, what: words::What) {
        let mut word = self.touch_processor(p);
        let Some(g_word) = self.touch_goroutine(g, thread_of(machine)) else { return };
        word = word.next();
        self.put(Kind::GoSyscallBegin, &[word.seq(), root(g).stack(what)]);
        self.set_processor(p, word, ProcStatus::Syscall);
        self.set_goroutine(g, g_word, GoStatus::Syscall);
        machine.lane.set_in_call(true);
    }
}

fn forget(g: GRef) {
    Word::NONE.write(word_of(g));
}

/// The machine that the caller is on, if it holds its processor. Inside the runtime.
fn with_processor() -> Option<(&'static Machine, &'static Processor)> {
    let machine = host::current_machine().cast::<Machine>();
    // SAFETY: hosts of this process are machines, and never freed.
    let machine = unsafe { machine.as_ref() }?;
    let p = machine.processor().filter(|_| !machine.ownership.is_lost())?;
    Some((machine, p))
}

#[inline(always)]
fn enter(machine: &Machine) -> Option<Section<'_>> {
    machine.lane.enter(thread_of(machine))
}

// ------------------------------------------------------------------------- goroutines

/// `g` was made. It is in no queue yet.
#[cold]
#[inline(never)]
pub(crate) fn created(g: GRef) {
    match with_processor() {
        Some((machine, p)) => created_on(machine, p, g),
        None => forget(g),
    }
}

/// As [`created`], by the caller's machine, which holds `p`.
#[cold]
#[inline(never)]
pub(crate) fn created_on(machine: &Machine, p: &Processor, g: GRef) {
    forget(g);
    let Some(mut section) = enter(machine) else { return };
    section.touch_processor(p);
    let parent = machine.current();
    if let Some(parent) = parent {
        section.touch_goroutine(parent, thread_of(machine));
    }
    section.create(g, parent);
}

/// `g` is about to be made runnable by the caller, whoever that is.
#[cold]
#[inline(never)]
pub(crate) fn ready(g: GRef) {
    match with_processor() {
        Some((machine, _)) => ready_on(machine, g),
        None => outside::write(|section| {
            if let Some(section) = section {
                section.unblock(g, None);
            }
        }),
    }
}

/// As [`ready`], by the caller's machine, which holds a processor.
#[cold]
#[inline(never)]
pub(crate) fn ready_on(machine: &Machine, g: GRef) {
    if let Some(mut section) = enter(machine) {
        section.unblock(g, machine.current());
    }
}

/// `g` has left `machine` by its status: it waits, gives way, or has ended.
#[cold]
#[inline(never)]
pub(crate) fn left(machine: &Machine, g: GRef) {
    let Some(p) = machine.processor() else { return };
    if let Some(mut section) = enter(machine) {
        section.touch_processor(p);
        section.leave_goroutine(machine, g);
    }
}

/// As [`left`], and `next` is about to run on `machine`: one section, and one look at the clock.
#[cold]
#[inline(never)]
pub(crate) fn switches(machine: &Machine, g: GRef, next: GRef) {
    let Some(p) = machine.processor() else { return };
    if let Some(mut section) = enter(machine) {
        section.touch_processor(p);
        if section.leave_goroutine(machine, g) {
            section.start_next(next);
        } else {
            section.aside(|section| section.start_goroutine(next));
        }
    }
}

/// `g` is about to run on `machine`.
#[cold]
#[inline(never)]
pub(crate) fn runs(machine: &Machine, g: GRef) {
    let Some(p) = machine.processor() else { return };
    if let Some(mut section) = enter(machine) {
        section.touch_processor(p);
        section.start_goroutine(g);
    }
}

// ------------------------------------------------------------------------- processors

/// `machine` holds `p` from now on.
#[cold]
#[inline(never)]
pub(crate) fn acquired(machine: &Machine, p: &Processor) {
    if let Some(mut section) = enter(machine) {
        let mut word = section.touch_processor(p);
        word = word.next();
        section.put(Kind::ProcStart, &[p.id.into(), word.seq()]);
        section.set_processor(p, word, ProcStatus::Running);
    }
}

/// `machine` gives `p` up by itself.
#[cold]
#[inline(never)]
pub(crate) fn released(machine: &Machine, p: &Processor) {
    if let Some(mut section) = enter(machine) {
        let word = section.touch_processor(p);
        section.put(Kind::ProcStop, &[]);
        section.set_processor(p, word, ProcStatus::Idle);
    }
}

/// Takes the processor of `victim` if it is in a declared call. Whoever wants it.
///
/// The section begins before: what the machine says when it sees that the processor is gone must not
/// be in an earlier generation than this. And this must not be in an earlier one than the call, which may
/// have begun since the section did: it goes on in the call's then.
pub(crate) fn take_from_call(victim: &Machine) -> Option<&'static Processor> {
    let take = || victim.ownership.take_from_call().map(|id| SCHEDULER.processor(id));
    if !is_on() {
        return take();
    }
    let mut taken = None;
    outside::write(|section| {
        taken = take();
        if let (Some(p), Some(section)) = (taken, section) {
            section.steal(p, victim);
        }
    });
    taken
}

impl Section<'_> {
    /// `p` was taken from `victim`, which is in a call.
    fn steal(&mut self, p: &Processor, victim: &Machine) {
        let known = Word::read(&p.traced);
        // ORDERING: Relaxed; the call wrote the word in the generation that it had read, before the taking.
        let now = u64::from(GENERATION.load(Relaxed));
        let is_behind = known.generation() > self.generation && known.generation() == now;
        if is_behind && !self.go_on_in(now) {
            return;
        }
        if known.is_known() && known.generation() != self.generation {
            // The thread that has it says nothing in this generation.
            let status = ProcStatus::Abandoned as u64;
            self.put(Kind::ProcStatus, &[p.id.into(), status]);
            Word::new(self.generation, status).write(&p.traced);
        }
        let mut word = self.touch_processor(p);
        word = word.next();
        self.put(Kind::ProcSteal, &[p.id.into(), word.seq(), thread_of(victim)]);
        self.set_processor(p, word, ProcStatus::Idle);
    }
}

/// The caller has taken `p` from `victim`, which sleeps in the kernel without having said so. To the
/// trace it is in a call. Between [`Lane::lend`] and [`Lane::take_back`].
#[cold]
#[inline(never)]
pub(crate) fn taken_from_sleeper(p: &Processor, victim: &Machine) {
    let Some(g) = victim.current() else { return };
    if let Some(mut section) = enter(victim) {
        section.begin_call(victim, p, g, words::UNDECLARED);
    }
    outside::write(|section| {
        if let Some(section) = section {
            section.steal(p, victim);
        }
    });
}

// ------------------------------------------------------------------------------ calls

/// `g`, which runs on `machine`, enters a declared call.
#[cold]
#[inline(never)]
pub(crate) fn call_begins(machine: &Machine, g: GRef) {
    let Some(p) = machine.processor() else { return };
    if let Some(mut section) = enter(machine) {
        section.begin_call(machine, p, g, words::CALL);
    }
}

/// The call of `g` on `machine` is over, and it has its processor still.
pub(crate) fn call_ends(machine: &Machine, g: GRef) {
    if !machine.lane.is_in_call() {
        return;
    }
    machine.lane.set_in_call(false);
    let Some(p) = machine.processor() else { return };
    if let Some(mut section) = enter(machine) {
        let p_word = section.touch_processor(p);
        let Some(word) = section.touch_goroutine(g, thread_of(machine)) else { return };
        section.put(Kind::GoSyscallEnd, &[]);
        section.set_processor(p, p_word, ProcStatus::Running);
        section.set_goroutine(g, word, GoStatus::Running);
    }
}

/// The machine has lost its processor in a call, declared or not, and has another one; `g` runs on.
pub(crate) fn call_ends_elsewhere(machine: &Machine, g: GRef) {
    if !machine.lane.is_in_call() {
        return;
    }
    machine.lane.set_in_call(false);
    if let Some(mut section) = enter(machine) {
        section.end_call_blocked(machine, g);
        section.start_goroutine(g);
    }
}

/// The machine has lost its processor in a call, declared or not, and has none: calls `give_up`, which
/// makes `g` runnable.
pub(crate) fn call_ends_without_processor(machine: &Machine, g: GRef, give_up: impl FnOnce()) {
    // Against whoever begins a trace and looks at machines in calls.
    let _alone = machine.lane.calls.lock();
    if machine.lane.is_in_call() {
        machine.lane.set_in_call(false);
        if let Some(mut section) = enter(machine) {
            section.end_call_blocked(machine, g);
        }
    }
    give_up();
}

// ----------------------------------------------------------------------------- ranges

/// Why the world is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Procs,
    Collect,
    Trace,
    Test,
}

/// Writes an event of the goroutine that runs on the calling machine; false without one.
fn by_running(write: impl FnOnce(&mut Section<'_>, GRef)) -> bool {
    let Some((machine, p)) = with_processor() else { return false };
    let Some(g) = machine.current() else { return false };
    let Some(mut section) = enter(machine) else { return false };
    section.touch_processor(p);
    if section.touch_goroutine(g, thread_of(machine)).is_none() {
        return false;
    }
    write(&mut section, g);
    true
}

/// The caller begins to stop the world; in which generation that was said, 0 if not. Inside.
pub(crate) fn world_stops(why: Stop) -> u64 {
    let mut said = 0;
    let kind = match why {
        Stop::Procs => words::STOP_PROCS,
        Stop::Collect => words::STOP_COLLECT,
        Stop::Trace => words::STOP_TRACE,
        Stop::Test => words::STOP_TEST,
    };
    if is_on() {
        by_running(|section, g| {
            section.put(Kind::STWBegin, &[kind, root(g).stack(words::FUNCTION)]);
            said = section.generation;
        });
    }
    said
}

/// The world goes on. `said`: what [`world_stops`] returned.
pub(crate) fn world_starts(said: u64) {
    // ORDERING: Relaxed; see `Word::is_known`.
    if said != 0 && is_on() && said >= u64::from(FIRST.load(Relaxed)) {
        by_running(|section, _| section.put(Kind::STWEnd, &[]));
    }
}

/// GOMAXPROCS has changed. Inside.
pub(crate) fn procs_changed(procs: u32) {
    if is_on() && !by_running(|section, _| section.put(Kind::ProcsChange, &[procs.into(), 0])) {
        // ORDERING: Relaxed; see `start_goroutine`.
        MUST_TELL_PROCS.store(true, Relaxed);
    }
}

/// The number of the last event about collections.
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
/// The collection that goes on, as far as the trace says; 0: none.
static COLLECTION_SHOWN: AtomicU64 = AtomicU64::new(0);
/// One collection at a time is in the trace.
static IS_COLLECTING: AtomicBool = AtomicBool::new(false);

/// A collection begins; in which generation that was said, 0 if not. Outside the runtime.
pub(crate) fn collection_begins() -> u64 {
    // ORDERING: Acquire pairs with the Release in `collection_ends`.
    if !is_on() || IS_COLLECTING.swap(true, Acquire) {
        return 0;
    }
    let mut said = 0;
    if let Some(inside) = crate::machine::Inside::enter() {
        by_running(|section, g| {
            // ORDERING: Relaxed for both; one collection at a time.
            let seq = COLLECTIONS.fetch_add(1, Relaxed) + 1;
            section.put(Kind::GCBegin, &[seq, root(g).stack(words::FUNCTION)]);
            COLLECTION_SHOWN.store(seq, Relaxed);
            said = section.generation;
        });
        inside.leave();
    }
    if said == 0 {
        // ORDERING: Relaxed; nothing was written.
        IS_COLLECTING.store(false, Relaxed);
    }
    said
}

/// It ends. `said`: what [`collection_begins`] returned.
pub(crate) fn collection_ends(said: u64) {
    if said == 0 {
        return;
    }
    // ORDERING: Relaxed; see `Word::is_known`.
    if let Some(inside) = crate::machine::Inside::enter() {
        if said >= u64::from(FIRST.load(Relaxed)) {
            by_running(|section, _| {
                // ORDERING: Relaxed for both; one collection at a time.
                let seq = COLLECTIONS.fetch_add(1, Relaxed) + 1;
                section.put(Kind::GCEnd, &[seq]);
                COLLECTION_SHOWN.store(0, Relaxed);
            });
        }
        inside.leave();
    }
    // ORDERING: Release pairs with `collection_begins`.
    IS_COLLECTING.store(false, std::sync::atomic::Ordering::Release);
}

/// The caller's place in the code as a stack.
fn site_of(g: GRef, site: &'static Location<'static>) -> u64 {
    Root::at(g, site).stack(words::FUNCTION)
}

/// The number of [`WaitReason`]s must fit where they are kept.
const _: () = assert!(size_of::<WaitReason>() == 1);
