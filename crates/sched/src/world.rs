//! Stopping the world: every processor is taken out of its machine's hands for a moment.
//!
//! Machines stop at their next way out of the runtime or next round of the scheduler; processors
//! of machines that are idle, in a declared call or asleep in the kernel are taken where they are.
//! Those that goroutines compute on are interrupted, if they have not stopped by themselves at once.
//!
//! A machine that stopped has its own processor back at the start. In Go any idle one gets it; then
//! the kernel wakes a thread that last ran on the stopper's CPU, in the place of the stopper, which
//! is held up for a millisecond or more while the CPU of the machine that stopped is idle.
//!
//! While the world is stopped nothing allocates, drops user values, unwinds or exits: stopped code
//! may hold any lock.

use crate::attention::{self, STOP};
use crate::blocking::hand_off;
use crate::gomaxprocs::Source;
use crate::histogram::{Durations, Histogram};
use crate::history::{self, Kind};
use crate::machine::{Inside, Machine};
use crate::monitor::{self, REVOKER};
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::trace::{self, Stop};
use crate::{fleet, idle, preempt, rest, yields};
use gosched_base::{Parker, os};
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::time::Duration;

/// How long the stopper sleeps before it looks for more that it can take itself. Go's number.
const RETRY: Duration = Duration::from_micros(100);
/// How long it waits awake before that, and a machine that stopped for the start: both mostly last a
/// few microseconds, less than it takes to fall asleep and be woken.
const PATIENCE_NS: u64 = 10_000;

/// Whether somebody stops the world. One at a time.
static STOPPING: AtomicBool = AtomicBool::new(false);
/// Processors that are stopped.
static STOPPED: AtomicU32 = AtomicU32::new(0);
static STOPPER: Parker = Parker::new();

/// Whether the world is being stopped. For the monitor, under [`REVOKER`].
pub(crate) fn is_stopping() -> bool {
    // ORDERING: Acquire pairs with `acquire_world`.
    STOPPING.load(Acquire)
}

/// Whether `p` is asked to stop. Its holder gives it up then.
#[inline]
pub(crate) fn must_stop(p: &Processor) -> bool {
    // ORDERING: Relaxed; a request that comes now is seen in the next round.
    p.attention.load(Relaxed) & STOP != 0
}

/// The holder of `p` stops until the world starts. It has `p` again then if there is something to
/// run, else it is a machine without a processor.
pub(crate) fn give_up(machine: &'static Machine, p: &'static Processor) {
    if machine.is_searching.replace(false) {
        SCHEDULER.searchers.give_up();
    }
    history::processor(Kind::Transit, p);
    machine.part_with(p);
    p.set_machine(None);
    p.note_stopped(machine);
    count_stopped();
    STOPPER.wake();
    // Only `start` wakes this parker now: the machine is in nobody's list.
    machine.parker.sleep_patiently(PATIENCE_NS);
    if let Some(p) = machine.take_handed() {
        idle::acquire(machine, p);
    }
}

fn count_stopped() {
    // ORDERING: AcqRel: the stopper sees what the machine did to its processor.
    STOPPED.fetch_add(1, AcqRel);
}

/// How long the world was stopped, from the first request until all processors were free to go on.
static STOPS: Histogram = Histogram::new();
/// Those of them for collections.
static STOPS_TO_COLLECT: Histogram = Histogram::new();

/// The stops of the world since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorldStops {
    /// How many there were.
    pub count: u64,
    /// 99 of 100 did not last longer (to a quarter).
    pub p99: Duration,
    /// The longest.
    pub longest: Duration,
}

/// How often and for how long the world was stopped.
#[must_use]
pub fn world_stops() -> WorldStops {
    WorldStops { count: STOPS.count(), p99: STOPS.percentile(99), longest: STOPS.longest() }
}

/// How long the world was stopped each time, for collections and for all purposes.
///
/// Go's `/sched/pauses/total/gc:seconds`, and the sum of that and `/sched/pauses/total/other:seconds`.
#[must_use]
pub fn world_stop_times() -> (Durations, Durations) {
    let (mut to_collect, mut all) = (Durations::none(), Durations::none());
    to_collect.add(&STOPS_TO_COLLECT);
    all.add(&STOPS);
    (to_collect, all)
}

/// Sets the number of processors and who said it, if `is_wanted` once it is the caller's turn, and
/// returns the former number. The runtime has started, and `n` is in its limits.
pub(crate) fn set_procs_if(
    n: usize,
    source: Source,
    is_wanted: impl FnOnce() -> bool,
) -> Option<usize> {
    acquire_world();
    let before = is_wanted().then(|| {
        source.set();
        let (before, n) = (SCHEDULER.procs(), n as u32);
        if n != before {
            SCHEDULER.prepare_processors(n);
            trace::mark_new_processors();
            stop_and(Stop::Procs, |own| resize(own, n));
        }
        before as usize
    });
    // ORDERING: Release pairs with `acquire_world`.
    STOPPING_TURN.store(false, Release);
    before
}

/// Stops the world, calls `act` with all processors in nobody's hands but the caller's, and starts
/// it again.
pub(crate) fn stop_to_collect(act: impl FnOnce()) {
    stop_briefly(Stop::Collect, |_| act());
}

/// As above, for the beginning of a trace; `act` gets the caller's own processor.
pub(crate) fn stop_to_trace(act: impl FnOnce(Option<&'static Processor>)) {
    stop_briefly(Stop::Trace, act);
}

fn stop_briefly(why: Stop, act: impl FnOnce(Option<&'static Processor>)) {
    acquire_world();
    stop_and(why, |own| {
        act(own);
        own
    });
    // ORDERING: Release pairs with `acquire_world`.
    STOPPING_TURN.store(false, Release);
}

/// Stops the world and starts it again; how long that took. For the bench of it.
#[doc(hidden)]
pub fn pause_world() -> Duration {
    crate::start::ensure_started();
    acquire_world();
    let begin = os::monotonic_ns();
    stop_and(Stop::Test, |own| own);
    let took = os::monotonic_ns().saturating_sub(begin);
    // ORDERING: Release pairs with `acquire_world`.
    STOPPING_TURN.store(false, Release);
    Duration::from_nanos(took)
}

/// Whose turn it is to stop the world; taken before anything is stopped.
static STOPPING_TURN: AtomicBool = AtomicBool::new(false);

fn acquire_world() {
    // ORDERING: Acquire pairs with the Release in `set_procs_if`.
    while STOPPING_TURN.swap(true, Acquire) {
        yields::gosched();
    }
}

/// Stops the world, calls `change` with the caller's own processor, and starts it with what
/// `change` returns as the caller's own.
fn stop_and(
    why: Stop,
    change: impl FnOnce(Option<&'static Processor>) -> Option<&'static Processor>,
) {
    let begin = os::monotonic_ns();
    stop_change_and_start(why, change);
    let took = os::monotonic_ns().saturating_sub(begin);
    STOPS.record(took);
    if why == Stop::Collect {
        STOPS_TO_COLLECT.record(took);
    }
}

fn stop_change_and_start(
    why: Stop,
    change: impl FnOnce(Option<&'static Processor>) -> Option<&'static Processor>,
) {
    match Inside::enter() {
        Some(inside) => {
            let machine = inside.machine();
            let own = inside.processor();
            let said = trace::world_stops(why);
            stop_others(Some(own));
            let new = change(Some(own));
            if let Some(new) = new
                && new.id != own.id
            {
                machine.part_with(own);
                own.set_machine(None);
                idle::acquire(machine, new);
            }
            if why == Stop::Procs {
                trace::procs_changed(SCHEDULER.procs());
            }
            start(new);
            trace::world_starts(said);
            inside.leave();
        }
        None => {
            stop_others(None);
            change(None);
            start(None);
        }
    }
}

/// Returns when every processor but `own` is in nobody's hands.
fn stop_others(own: Option<&'static Processor>) {
    {
        let _one_revoker = REVOKER.lock();
        // ORDERING: Relaxed and Release; the monitor reads the flag under the lock.
        STOPPED.store(u32::from(own.is_some()), Relaxed);
        STOPPING.store(true, Release);
    }
    let is_own = |p: &Processor| own.is_some_and(|own| own.id == p.id);
    for p in SCHEDULER.processors().filter(|p| !is_own(p)) {
        attention::ask(p, STOP);
    }
    take_what_rests();
    for_each_other(own, |_, machine| take_from_call(machine));
    while !are_all_stopped_soon() {
        take_what_rests();
        for_each_other(own, |p, machine| {
            if preempt::is_on() {
                preempt::request(machine);
            }
            take_from_call(machine);
            take_from_sleeper(p, machine);
        });
        if are_all_stopped_soon() {
            return;
        }
        STOPPER.sleep_for(RETRY);
    }
}

/// Waits a little until all processors are stopped; whether they are.
fn are_all_stopped_soon() -> bool {
    // ORDERING: Acquire pairs with `count_stopped`.
    let are_stopped = || STOPPED.load(Acquire) == SCHEDULER.procs();
    let until = os::monotonic_ns() + PATIENCE_NS;
    while !are_stopped() {
        if os::monotonic_ns() > until {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Takes processors that are idle, at rest, or wait for a machine.
fn take_what_rests() {
    rest::end_for_stop();
    while SCHEDULER.take_idle().is_some() {
        count_stopped();
    }
    while fleet::take_order().is_some() {
        SCHEDULER.searchers.give_up();
        count_stopped();
    }
}

/// Calls `f` with each machine that holds a processor other than `own`, as the one revoker.
fn for_each_other(
    own: Option<&'static Processor>,
    f: impl Fn(&'static Processor, &'static Machine),
) {
    let _one_revoker = REVOKER.lock();
    for p in SCHEDULER.processors().filter(|p| own.is_none_or(|own| own.id != p.id)) {
        if let Some(machine) = p.machine() {
            f(p, machine);
        }
    }
}

/// Takes the processor of a machine in a declared call.
fn take_from_call(machine: &'static Machine) {
    if let Some(taken) = trace::take_from_call(machine) {
        stop_taken(taken);
    }
}

/// Takes the processor of a machine asleep in the kernel, which had `p` when it was looked at.
fn take_from_sleeper(p: &'static Processor, machine: &'static Machine) {
    if let Some(leaves) = machine.progress()
        && monitor::take_if_asleep(p, machine, leaves)
    {
        stop_taken(p);
    }
}

fn stop_taken(p: &'static Processor) {
    history::processor(Kind::Transit, p);
    p.set_machine(None);
    count_stopped();
}

/// Starts the world: processors with work get machines, the others are idle.
fn start(own: Option<&'static Processor>) {
    for p in SCHEDULER.all_processors() {
        // ORDERING: Release pairs with nothing: the request carries no data.
        p.attention.fetch_and(!STOP, Release);
    }
    {
        let _one_revoker = REVOKER.lock();
        // ORDERING: Release: as in `stop_others`.
        STOPPING.store(false, Release);
    }
    for p in SCHEDULER.all_processors() {
        let stopped = p.take_stopped();
        let is_free = p.id < SCHEDULER.procs() && own.is_none_or(|own| own.id != p.id);
        let has_work = !p.ring.is_empty() || !p.urgent.is_empty();
        match stopped {
            Some(machine) if is_free && has_work => machine.hand_over(p),
            None if is_free && has_work => hand_off(p),
            _ => {
                if is_free {
                    SCHEDULER.give_idle(p);
                }
                if let Some(machine) = stopped {
                    machine.parker.wake();
                }
            }
        }
    }
    idle::recheck_after_release();
}

/// With all processors in nobody's hands: those above `n` lose what they hold.
fn resize(own: Option<&'static Processor>, n: u32) -> Option<&'static Processor> {
    let before = SCHEDULER.procs();
    for id in n..before {
        retire(SCHEDULER.processor(id));
    }
    SCHEDULER.set_procs(n);
    own.map(|own| if own.id < n { own } else { SCHEDULER.processor(0) })
}

/// Its goroutines go to the global queue. Timers stay and are run by others.
fn retire(p: &'static Processor) {
    // SAFETY: the world is stopped, so this thread is the one that holds `p`.
    unsafe { empty(p) };
    // SAFETY: as above.
    unsafe { p.core() }.flush();
    history::processor(Kind::Retired, p);
}

/// The processor's goroutines go to the head of the global queue, in order.
///
/// # Safety
/// * As for [`Processor::core`].
pub(crate) unsafe fn empty(p: &'static Processor) {
    // SAFETY: by the caller.
    let mut batch = unsafe { p.queue() }.drain().into_list();
    let mut urgent = p.urgent.take_all().into_list();
    while let Some(g) = urgent.pop_front() {
        batch.push_front(g);
    }
    // Pushed one by one at the head they would turn round; so the last goes first.
    let mut reversed = gosched_runq::List::new();
    while let Some(g) = batch.pop_front() {
        reversed.push_front(g);
    }
    while let Some(g) = reversed.pop_front() {
        SCHEDULER.global.push_front(g);
    }
}
