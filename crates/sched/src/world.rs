//! Stopping the world: every processor is taken out of its machine's hands for a moment.
//!
//! Machines stop at their next way out of the runtime or next round of the scheduler; processors
//! of machines that are idle, in a declared call or asleep in the kernel are taken where they are.
//!
//! While the world is stopped nothing allocates, drops user values, unwinds or exits: stopped code
//! may hold any lock.

use crate::attention::{self, STOP};
use crate::blocking::hand_off;
use crate::histogram::Histogram;
use crate::history::{self, Kind};
use crate::machine::{Inside, Machine};
use crate::monitor::{self, REVOKER};
use crate::processor::Processor;
use crate::scheduler::{PROCS_MAX, SCHEDULER};
use crate::{fleet, forked, idle, preempt, yields};
use gosched_base::{Parker, os};
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::time::Duration;

/// How long the stopper sleeps before it looks for more that it can take itself. Go's number.
const RETRY: Duration = Duration::from_micros(100);

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

/// The holder of `p` stops. It waits for a processor afterwards like any machine without one.
pub(crate) fn give_up(machine: &'static Machine, p: &'static Processor) {
    if machine.is_searching.replace(false) {
        SCHEDULER.searchers.give_up();
    }
    history::processor(Kind::Transit, p);
    machine.set_processor(None);
    p.set_machine(None);
    count_stopped();
    STOPPER.wake();
}

fn count_stopped() {
    // ORDERING: AcqRel: the stopper sees what the machine did to its processor.
    STOPPED.fetch_add(1, AcqRel);
}

/// How long the world was stopped, from the first request until all processors were free to go on.
static STOPS: Histogram = Histogram::new();

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

/// Sets GOMAXPROCS and returns its former value. The world is stopped for it.
///
/// Go's `runtime.GOMAXPROCS(n)` with `n > 0`; `n` is clipped to 1,024.
pub fn set_procs(n: usize) -> usize {
    forked::check();
    let n = n.clamp(1, PROCS_MAX) as u32;
    crate::start::ensure_started();
    acquire_world();
    let before = SCHEDULER.procs();
    if n != before {
        SCHEDULER.prepare_processors(n);
        stop_and(|own| resize(own, n));
    }
    // ORDERING: Release pairs with `acquire_world`.
    STOPPING_TURN.store(false, Release);
    before as usize
}

/// Stops the world, calls `act` with all processors in nobody's hands but the caller's, and starts
/// it again.
pub(crate) fn stop_briefly(act: impl FnOnce()) {
    acquire_world();
    stop_and(|own| {
        act();
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
    stop_and(|own| own);
    let took = os::monotonic_ns().saturating_sub(begin);
    // ORDERING: Release pairs with `acquire_world`.
    STOPPING_TURN.store(false, Release);
    Duration::from_nanos(took)
}

/// Whose turn it is to stop the world; taken before anything is stopped.
static STOPPING_TURN: AtomicBool = AtomicBool::new(false);

fn acquire_world() {
    // ORDERING: Acquire pairs with the Release in `set_procs`.
    while STOPPING_TURN.swap(true, Acquire) {
        yields::gosched();
    }
}

/// Stops the world, calls `change` with the caller's own processor, and starts it with what
/// `change` returns as the caller's own.
fn stop_and(change: impl FnOnce(Option<&'static Processor>) -> Option<&'static Processor>) {
    let begin = os::monotonic_ns();
    stop_change_and_start(change);
    STOPS.record(os::monotonic_ns().saturating_sub(begin));
}

fn stop_change_and_start(
    change: impl FnOnce(Option<&'static Processor>) -> Option<&'static Processor>,
) {
    match Inside::enter() {
        Some(inside) => {
            let machine = inside.machine();
            let own = inside.processor();
            stop_others(Some(own));
            let new = change(Some(own));
            if let Some(new) = new
                && new.id != own.id
            {
                own.set_machine(None);
                idle::acquire(machine, new);
            }
            start(new);
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
    loop {
        take_what_can_be_taken(own);
        // ORDERING: Acquire pairs with `count_stopped`.
        if STOPPED.load(Acquire) == SCHEDULER.procs() {
            return;
        }
        STOPPER.sleep_for(RETRY);
    }
}

/// Idle processors, and those of machines that block.
fn take_what_can_be_taken(own: Option<&'static Processor>) {
    while SCHEDULER.take_idle().is_some() {
        count_stopped();
    }
    while fleet::take_order().is_some() {
        SCHEDULER.searchers.give_up();
        count_stopped();
    }
    let _one_revoker = REVOKER.lock();
    for p in SCHEDULER.processors().filter(|p| own.is_none_or(|own| own.id != p.id)) {
        let Some(machine) = p.machine() else { continue };
        if preempt::is_on() {
            preempt::request(machine);
        }
        if let Some(taken) = take_from_blocked(p, machine) {
            history::processor(Kind::Transit, taken);
            taken.set_machine(None);
            count_stopped();
        }
    }
}

/// The processor that was taken from `machine`, which had `p` when it was looked at.
fn take_from_blocked(
    p: &'static Processor,
    machine: &'static Machine,
) -> Option<&'static Processor> {
    if let Some(taken) = machine.ownership.take_from_call() {
        return Some(SCHEDULER.processor(taken));
    }
    let leaves = machine.progress()?;
    monitor::take_if_asleep(p, machine, leaves).then_some(p)
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
    for p in SCHEDULER.processors().filter(|p| own.is_none_or(|own| own.id != p.id)) {
        if p.ring.is_empty() {
            SCHEDULER.give_idle(p);
        } else {
            hand_off(p);
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

/// Its goroutines go to the head of the global queue, in order. Timers stay and are run by others.
fn retire(p: &'static Processor) {
    // SAFETY: the world is stopped, so this thread is the one that holds `p`.
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
    // SAFETY: as above.
    unsafe { p.core() }.flush();
    history::processor(Kind::Retired, p);
}
