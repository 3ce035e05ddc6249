//! Machines without work: how they sleep, and who wakes them.
//!
//! The protocol, its proof and its model are in `gosched-protocol`'s `Searchers` and `Bell`. Here
//! are the queues that are looked at, and the threads that sleep.
//!
//! Invariants
//! * I1. A machine that has put its processor among the idle looks at every queue once more before
//!   it sleeps, whether it searched or not.
//!   But for next slots, if it keeps a lookout (`gosched-protocol`'s `Lookout`): it has just seen that
//!   what is in them runs where it is sooner than it could be taken, sleeps for a short time and looks
//!   again. Whoever fills an empty next slot meanwhile wakes nobody.
//! * I2. If a processor is idle, some machine sleeps in the poller with its bell announced, or
//!   searches, or has yet to look again by I1. So a plain thread needs to ring one bell only.

use crate::history::{self, Kind};
use crate::machine::Machine;
use crate::park::Filled;
use crate::plant::{self, Wake};
use crate::processor::Processor;
use crate::scheduler::{Overslept, SCHEDULER};
use crate::{deadlock, fleet, monitor, near, netpoll, steal, threads, trace};
use gosched_base::os;
use gosched_poll::Wait;
use std::sync::atomic::{
    Ordering::{AcqRel, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};
use std::time::Duration;

/// So many machines sleep for as long as it takes; more than that end after a while.
const SLEEPERS_KEPT: u32 = 8;
/// How long a machine beyond that number sleeps. Long against what a new thread costs (50 us).
const SLEEP_MAX: Duration = Duration::from_secs(3);
/// How long a machine sleeps that keeps a lookout; the kernel adds up to 50 us.
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// Wakes a machine for work that was just published, if a processor is idle and nobody searches.
///
/// Go's `wakep`. Inside the runtime.
#[inline]
pub(crate) fn wake_one() {
    history::anyone(Kind::Considered, 0);
    // ORDERING: pairs with `look_again` (edge `idle-fence`): with no idle processor in sight,
    // whoever goes idle later sees the work.
    fence(SeqCst);
    wake_after_fence();
}

/// As [`wake_one_for`], for what was put into a next slot: by a swap, and what that displaced into the
/// ring was in sight all the time. Nobody is woken for an empty one that was filled while somebody
/// keeps a lookout (I1).
///
/// On x86 a read-modify-write is a full fence (Intel SDM volume 3, 9.2.5: locked instructions have
/// a total order, and neither loads nor stores are reordered with them), and a second one costs as
/// much as the first, 5 ns. The compiler must still be told. A single processor's next slot is filled by
/// a store, which is no fence; but then the caller holds that processor, and none is idle.
#[inline]
pub(crate) fn wake_one_for_next(wake: Wake, filled: Filled) {
    if plant::forgets(wake) {
        return;
    }
    history::anyone(Kind::Considered, 0);
    if cfg!(target_arch = "x86_64") {
        // ORDERING: as in `wake_one`, together with the swap.
        compiler_fence(SeqCst);
    } else {
        // ORDERING: as in `wake_one`.
        fence(SeqCst);
    }
    if SCHEDULER.idle_count() > 0
        && !(filled == Filled::Empty && SCHEDULER.lookout.is_kept())
        && SCHEDULER.searchers.summon()
    {
        start_searcher();
    }
}

#[inline]
fn wake_after_fence() {
    if SCHEDULER.idle_count() > 0 && SCHEDULER.searchers.summon() {
        start_searcher();
    }
}

/// As [`wake_one`], unless a test has planted that this wake is forgotten.
#[inline]
pub(crate) fn wake_one_for(wake: Wake) {
    if !plant::forgets(wake) {
        wake_one();
    }
}

/// The caller has raised the count of searchers for the machine that this wakes.
#[cold]
fn start_searcher() {
    // Without an idle processor everybody is busy, and looks again before going idle (I1).
    if let Some(p) = SCHEDULER.take_idle_or_call_off() {
        start_searcher_on(p);
    }
}

/// Wakes a machine on an idle processor of `node`, where a thief from elsewhere has seen work; false
/// if there is none.
pub(crate) fn wake_one_of(node: u16) -> bool {
    if !near::has_idle(node) {
        return false;
    }
    let Some(p) = SCHEDULER.take_idle_of(node) else { return false };
    SCHEDULER.searchers.join_for_sure();
    start_searcher_on(p);
    true
}

/// Finds a machine for `p`; the caller has counted it among the searchers.
pub(crate) fn start_searcher_on(p: &'static Processor) {
    // Whoever is woken must not take what the waker is about to run, see `steal`. One that hands its own
    // on runs nothing.
    let waker = Machine::current_here().and_then(Machine::processor).filter(|own| own.id != p.id);
    if let Some(waker) = waker {
        waker.set_waking(true);
    }
    match SCHEDULER.take_sleeping_for(p) {
        Some(machine) => {
            machine.is_searching.set(true);
            machine.hand_over(p);
        }
        None => fleet::order_machine(p),
    }
    fleet::want_spare();
    if let Some(waker) = waker {
        waker.set_waking(false);
    }
}

/// For whoever put a processor among the idle without being a machine that looks again (I1).
pub(crate) fn recheck_after_release() {
    // ORDERING: pairs with `summon` (edge `idle-fence`).
    fence(SeqCst);
    if is_work_in_sight() || !SCHEDULER.is_polled() {
        wake_one();
    }
    history::done_outside();
}

/// As [`wake_one`], from a plain thread: no lock. The poller sleeps if anyone does (I2).
pub(crate) fn wake_one_from_outside() {
    if !wake_poller() && SCHEDULER.idle_count() == 0 {
        monitor::look_for_urgent();
    }
    history::done_outside();
}

/// Wakes the machine in the poller for work that was just published; false if nobody sleeps there,
/// or it was woken before.
pub(crate) fn wake_poller() -> bool {
    plant::forgets(Wake::Bell) || ring()
}

/// Rings the poller's bell, if nobody has; whether there was somebody to ring for.
fn ring() -> bool {
    history::anyone(Kind::Ringing, 0);
    let is_claimed = SCHEDULER.poller_bell.claim();
    let claimed = is_claimed.then(history::claimed_poll);
    if is_claimed {
        SCHEDULER.poller().ring();
    }
    history::rung(claimed);
    is_claimed
}

/// Gives the poller's sleeper an earlier deadline.
pub(crate) fn poll_no_later_than(when: u64) {
    // ORDERING: the fence pairs with the one in `poll` (Bell's `announce`): either the sleeper
    // sees the timer, or it is seen here asleep with its deadline.
    fence(SeqCst);
    if !SCHEDULER.poller_bell.is_announced() {
        return monitor::look_no_later_than(when);
    }
    if SCHEDULER.polls_until.load(Relaxed) > when {
        ring();
    }
}

/// Binds a processor to the machine.
pub(crate) fn acquire(machine: &'static Machine, p: &'static Processor) {
    history::processor(Kind::Acquired, p);
    machine.set_processor(Some(p));
    if trace::is_on() {
        trace::acquired(machine, p);
    }
    p.set_machine(Some(machine));
    machine.node.set(p.place.node);
    near::follow(machine, p);
    monitor::note_busy();
}

/// Unbinds it and puts it among the idle.
pub(crate) fn release(machine: &'static Machine, p: &'static Processor) {
    machine.part_with(p);
    p.set_machine(None);
    SCHEDULER.give_idle(p);
}

/// The machine found nothing: it gives its processor up and sleeps, unless a last look finds work.
pub(crate) fn release_and_sleep(machine: &'static Machine, p: &'static Processor) {
    release(machine, p);
    threads::processor_is_idle();
    sleep_without_processor(machine);
}

/// The machine has given its processor up: it sleeps, unless a last look finds work.
pub(crate) fn sleep_without_processor(machine: &'static Machine) {
    look_again(machine);
    if machine.processor().is_none() {
        wait_for_processor(machine);
    }
}

/// I1. With work in sight, and a processor still idle, the machine searches again.
fn look_again(machine: &'static Machine) {
    if machine.is_searching.replace(false) {
        SCHEDULER.searchers.give_up();
    } else {
        SCHEDULER.searchers.sit_out();
    }
    let is_work_in_sight =
        if machine.sees_pair.get() { is_work_behind_next_in_sight() } else { is_work_in_sight() };
    if is_work_in_sight {
        take_processor_to_search(machine);
    }
}

/// Takes a processor that waits for a machine, or an idle one, if there is any.
pub(crate) fn take_processor_to_search(machine: &'static Machine) {
    // One in an order counts among the searchers already.
    let p = fleet::take_order().or_else(|| {
        let idle = SCHEDULER.take_idle()?;
        SCHEDULER.searchers.join_for_sure();
        Some(idle)
    });
    if let Some(p) = p {
        machine.is_searching.set(true);
        acquire(machine, p);
    }
}

pub(crate) fn is_work_in_sight() -> bool {
    is_work_in(|p| p.ring.is_empty())
}

/// As [`is_work_in_sight`], but for what is in next slots.
fn is_work_behind_next_in_sight() -> bool {
    is_work_in(|p| p.ring.has_none_behind_next() && (p.machine().is_some() || p.ring.is_empty()))
}

fn is_work_in(is_empty: impl Fn(&Processor) -> bool) -> bool {
    // Without stealing only if no machine holds `p`.
    let is_in_sight = |p: &Processor| !is_empty(p) && (!steal::is_off() || p.machine().is_none());
    !SCHEDULER.global.is_empty()
        || !SCHEDULER.injected.is_empty()
        || near::is_work_in_sight()
        || SCHEDULER.all_processors().any(|p| is_in_sight(p) || !p.urgent.is_empty())
}

/// Sleeps until the machine has a processor again: in the poller, if nobody else is there, else on
/// its parker.
pub(crate) fn wait_for_processor(machine: &'static Machine) {
    // ORDERING: AcqRel pairs with the Release in `poll`; the poller has one user at a time.
    if !SCHEDULER.polling.swap(true, AcqRel) {
        poll(machine);
        if machine.processor().is_some() {
            return;
        }
        // All processors are busy: their machines look at queues and timers, and the next one to
        // go idle polls. The monitor stands in where they block.
        monitor::look_no_later_than(next_deadline());
    } else if begins_lookout(machine) {
        keep_lookout(machine);
        if machine.processor().is_some() || machine.is_ending.get() {
            return;
        }
    }
    let is_needed = sleep_until_needed(machine);
    get_up(machine, is_needed);
}

/// Whether the machine keeps a lookout from now on. If it would and another one does, that one looks at
/// next slots later than this one has.
fn begins_lookout(machine: &Machine) -> bool {
    let begins = machine.sees_pair.replace(false) && SCHEDULER.lookout.begin();
    if begins {
        SCHEDULER.counts.lookouts.add_shared();
        history::machine(Kind::Lookout, machine, 0);
    }
    begins
}

/// Sleeps among others for a short time, and looks for work again then. The caller has begun the
/// lookout.
fn keep_lookout(machine: &'static Machine) {
    lie_down(machine);
    let is_called = machine.parker.sleep_for(LOOK_AGAIN);
    history::machine(Kind::Awake, machine, 0);
    SCHEDULER.lookout.end();
    if !is_called {
        if let Overslept::Leaves = SCHEDULER.leave_sleeping(machine, 0) {
            return take_processor_to_search(machine);
        }
        // Somebody has taken it meanwhile.
        machine.parker.sleep();
    }
    let is_needed = !machine.is_dismissed.take();
    if !is_needed && is_work_in_sight() {
        // It will not look at what was left to it.
        wake_one();
    }
    get_up(machine, is_needed);
}

/// The machine was woken, and is no longer among the sleeping.
fn get_up(machine: &'static Machine, is_needed: bool) {
    if !is_needed {
        machine.is_ending.set(true);
        return;
    }
    match machine.take_handed() {
        Some(p) => acquire(machine, p),
        // Only `hand_over` wakes this parker.
        None => gosched_base::rt_abort!("m{}: woken without a processor", machine.id),
    }
}

/// Ends the sleeping machines that would end after a while. Not inside the runtime.
pub(crate) fn end_idle_machines() {
    while let Some(machine) = SCHEDULER.take_surplus_sleeper(SLEEPERS_KEPT) {
        machine.is_dismissed.set(true);
        machine.parker.wake();
    }
}

/// Puts the machine among the sleeping; how many these are.
fn lie_down(machine: &'static Machine) -> u32 {
    history::machine(Kind::Sleep, machine, 0);
    let sleepers = SCHEDULER.give_sleeping(machine);
    fleet::machine_sleeps();
    deadlock::machine_sleeps();
    sleepers
}

/// Sleeps until somebody hands a processor over. False: for too long, and there are others; the
/// machine ends.
fn sleep_until_needed(machine: &'static Machine) -> bool {
    let sleepers = lie_down(machine);
    if sleepers <= SLEEPERS_KEPT || machine.is_process_main() {
        machine.parker.sleep();
        return !machine.is_dismissed.take();
    }
    if machine.parker.sleep_for(SLEEP_MAX) {
        return !machine.is_dismissed.take();
    }
    match SCHEDULER.leave_sleeping(machine, SLEEPERS_KEPT) {
        Overslept::Leaves => false,
        Overslept::Stays | Overslept::Wanted => {
            machine.parker.sleep();
            !machine.is_dismissed.take()
        }
    }
}

/// Sleeps in the poller until the next timer, an event or the bell.
fn poll(machine: &'static Machine) {
    let mut until = next_deadline();
    let keeps_lookout = begins_lookout(machine);
    if keeps_lookout {
        until = until.min(os::monotonic_ns() + LOOK_AGAIN.as_nanos() as u64);
    }
    // ORDERING: Relaxed; `announce` has the fence that orders it, see `poll_no_later_than`.
    SCHEDULER.polls_until.store(until, Relaxed);
    history::poll_begins();
    SCHEDULER.poller_bell.announce();
    // Timers armed and work injected before the announcement rang no bell.
    let must_look = !SCHEDULER.injected.is_empty()
        || near::is_work_in_sight()
        || next_deadline() < until
        || fleet::has_orders();
    let ready = if must_look {
        netpoll::Ready::new()
    } else {
        history::machine(Kind::Sleep, machine, history::SLEEP_IN_POLLER);
        let ready = match until {
            u64::MAX => deadlock::sleep_for_ever(),
            _ => netpoll::poll(wait_until(until)),
        };
        history::machine(Kind::Awake, machine, 0);
        ready
    };
    SCHEDULER.poller_bell.withdraw();
    if keeps_lookout {
        SCHEDULER.lookout.end();
    }
    history::poll_ends(machine);
    // ORDERING: Release pairs with `wait_for_processor`.
    SCHEDULER.polling.store(false, Release);
    take_processor_to_search(machine);
    match machine.processor() {
        Some(p) => netpoll::place_first(p, ready),
        None => netpoll::place_without_processor(ready),
    }
}

fn wait_until(deadline: u64) -> Wait {
    match deadline.saturating_sub(os::monotonic_ns()) {
        0 => Wait::Never,
        ns => Wait::For(Duration::from_nanos(ns)),
    }
}

/// The earliest timer of all processors; `u64::MAX` if there is none.
pub(crate) fn next_deadline() -> u64 {
    SCHEDULER.all_processors().map(|p| p.timers.next_deadline()).min().unwrap_or(u64::MAX)
}

/// At the start: a machine that makes I2 hold from then on. Until it is started it counts as a
/// searcher, so that nobody else starts one.
pub(crate) struct FirstPoller(());

impl FirstPoller {
    pub(crate) fn hold_back() -> FirstPoller {
        SCHEDULER.searchers.join_for_sure();
        FirstPoller(())
    }

    /// With a single processor that is in use there is nobody to start.
    pub(crate) fn start(self) {
        start_searcher();
    }
}
