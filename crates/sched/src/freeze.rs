//! Freezing: a goroutine is stopped where it can't be moved, with its thread.
//!
//! On a stack that is not the goroutine's, with the thread's own thread-locals, or inside a user's
//! signal handler, code can't go on on another thread. Then the thread sleeps inside the handler of
//! SIGURG, and its processor goes to another machine. The goroutine is Runnable, in a queue, and
//! locked to its machine for the time: whoever takes it from the queue hands the processor over
//! (see [`locked`](crate::locked)), and the handler returns.
//!
//! Always safe, and a thread each. Hence a bound, and another machine must be at hand: frozen code
//! may hold a lock that making a thread needs.

use crate::attention::{STOP, URGENT};
use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::machine::Machine;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{fleet, idle, park, trace, transition};
use gosched_base::rt_abort;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Most frozen goroutines, and no more than a quarter of the machines there may be.
const FROZEN_MAX: u32 = 64;

/// How many there are.
static FROZEN: AtomicU32 = AtomicU32::new(0);

/// Freezes `g`, which runs on `machine`, and returns true when it has had its turn again. False:
/// not now, or not for whom the signal was.
///
/// In a signal handler that has entered the runtime, with every signal blocked that a handler of
/// the user's could run for.
pub(crate) fn freeze_in_signal(machine: &'static Machine, g: GRef) -> bool {
    let Some(_place) = Place::take() else { return false };
    if !machine.ownership.is_undisturbed() && !machine.ownership.keep() {
        freeze_without_processor(machine, g);
        return true;
    }
    let p = machine.expect_processor();
    // ORDERING: Relaxed; what comes with the bits is looked at by the scheduler.
    let makes_room = p.attention.load(Relaxed) & (URGENT | STOP) != 0;
    let must_yield = p.take_yield_asked();
    if !makes_room && !must_yield {
        return false;
    }
    let Some(other) = SCHEDULER.take_sleeping() else {
        fleet::want_spare();
        if must_yield {
            p.ask_to_yield();
        }
        return false;
    };
    if must_yield {
        g.use_slice_up();
    }
    machine.lane.set_why(trace::WHY_STOPPED);
    let lock = Locked::to(machine, g);
    machine.part_with(p);
    if makes_room {
        park::push_front(p, g)
    } else {
        SCHEDULER.global.push_back(g)
    }
    give(p, other);
    fleet::want_spare();
    sleep_until_turn(machine, g, lock);
    true
}

/// The machine has lost its processor in a blocked call, and computes.
#[cold]
fn freeze_without_processor(machine: &'static Machine, g: GRef) {
    history::machine(Kind::Lost, machine, 0);
    machine.lane.wait_for_borrower();
    machine.set_processor(None);
    machine.ownership.regained();
    let lock = Locked::to(machine, g);
    SCHEDULER.global.push_back(g);
    idle::wake_one();
    sleep_until_turn(machine, g, lock);
}

fn give(p: &'static Processor, other: &'static Machine) {
    history::processor(Kind::Transit, p);
    p.set_machine(None);
    SCHEDULER.searchers.join_for_sure();
    other.is_searching.set(true);
    other.hand_over(p);
}

fn sleep_until_turn(machine: &'static Machine, g: GRef, lock: Locked) {
    history::machine(Kind::Sleep, machine, 0);
    machine.parker.sleep();
    let Some(p) = machine.take_handed() else {
        // Only `locked::belongs_elsewhere` wakes this parker.
        rt_abort!("m{}: thawed without a processor", machine.id)
    };
    idle::acquire(machine, p);
    lock.undo(g);
    p.count_tick();
    p.counters.scheduled.add();
    // It goes on in the handler that it was stopped by, on the thread's thread-locals or its own.
    let _ = transition::run(machine, g);
    if trace::is_on() {
        trace::runs(machine, g);
    }
}

/// A goroutine that is Runnable and goes on on this machine only.
struct Locked {
    was_before: bool,
}

impl Locked {
    fn to(machine: &Machine, g: GRef) -> Locked {
        let was_before = g.locked_to().is_some();
        g.set_locked_to(Some(machine.id));
        machine.set_current(None);
        transition::yielded_in_place(machine, g);
        Locked { was_before }
    }

    fn undo(self, g: GRef) {
        if !self.was_before {
            g.set_locked_to(None);
        }
    }
}

/// One of the places for frozen goroutines.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let machines = SCHEDULER.settled.get().map_or(u32::MAX, |settled| settled.threads_max);
        // ORDERING: Relaxed for this and the one below; only a number.
        if FROZEN.fetch_add(1, Relaxed) < FROZEN_MAX.min((machines / 4).max(1)) {
            return Some(Place);
        }
        FROZEN.fetch_sub(1, Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // ORDERING: Relaxed; as above.
        FROZEN.fetch_sub(1, Relaxed);
    }
}
