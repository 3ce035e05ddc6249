//! The scheduler's loop: which goroutine runs next.
//!
//! Order, as Go's `findRunnable`: every 61st round the global queue; the own queue; the global
//! queue; the network; other processors' queues; sleep. Plain threads' injection list counts as
//! global. The network is passed over while there is something to steal, see `netpoll`.

use crate::attention::{self, URGENT};
use crate::goroutine::GRef;
use crate::history::{self, Kind, Source, tried};
use crate::machine::{Inside, Machine};
use crate::plant::Wake;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::switch::FAIRNESS_ROUNDS;
use crate::{
    chaos, fleet, idle, jumps, last_spare, locked, near, netpoll, park, rest, steal, switch,
    threads, world,
};
use gosched_runq::{Batch, Popped};
use std::sync::atomic::Ordering::Relaxed;

/// A machine's life. Returns when its thread must end, see `locked`.
pub(crate) fn schedule(inside: &Inside) {
    let machine = inside.machine();
    while !machine.is_ending.get() {
        let g = match machine.locked.get() {
            Some(g) => locked::wait_for_turn(machine, g),
            None => match find_runnable(machine) {
                Some(g) => g,
                None => break,
            },
        };
        let p = inside.processor();
        if locked::belongs_elsewhere(machine, p, g) {
            continue;
        }
        if !g.has_started() && !switch::attach(p, g) {
            p.counters.fiber_waits.add();
            threads::wait_for_fiber(g);
            continue;
        }
        locked::goroutine_starts(machine, g);
        p.count_tick();
        p.counters.scheduled.add();
        // SAFETY: this is the machine's scheduler, and `g` was taken from a queue.
        unsafe { switch::enter_goroutine(machine, g) };
    }
    locked::end_thread(machine);
}

/// The next goroutine; sleeps until there is one. `None`: the machine has slept for so long that
/// its thread ends.
fn find_runnable(machine: &'static Machine) -> Option<GRef> {
    while !machine.is_ending.get() {
        let Some(p) = machine.processor() else {
            idle::wait_for_processor(machine);
            continue;
        };
        if attention::must_part(p) {
            part(machine, p);
            continue;
        }
        let is_exhausted = fleet::is_exhausted();
        if is_exhausted && fleet::must_take_turns(p) {
            fleet::take_turns(machine, p);
            continue;
        }
        if let Some(g) =
            last_spare::find_by_rule(machine, p, is_exhausted, || find_without_sleep(machine, p))
        {
            stop_searching(machine);
            return Some(g);
        }
        idle::release_and_sleep(machine, p);
    }
    None
}

/// The machine gives its processor up because somebody has asked it to.
#[cold]
fn part(machine: &'static Machine, p: &'static Processor) {
    if world::must_stop(p) { world::give_up(machine, p) } else { rest::go(machine, p) }
}

/// The search order.
fn find_without_sleep(machine: &'static Machine, p: &'static Processor) -> Option<GRef> {
    history::machine(Kind::Search, machine, p.tick());
    let has_fired = p.timers.run_due(p);
    tried(machine, Source::Timers, None)
        .or_else(|| tried(machine, Source::Urgent, take_urgent(p)))
        .or_else(|| take_in_fairness_round(machine, p))
        .inspect(|_| {
            // What was fired for this machine to take is for others now.
            if has_fired {
                idle::wake_one_for(Wake::Timers);
            }
        })
        .or_else(|| tried(machine, Source::Local, take_local(p)))
        .or_else(|| take_of_node(p, near::take_own(p)))
        .or_else(|| take_injected(p))
        .or_else(|| tried(machine, Source::Global, take_global(p)))
        .or_else(|| {
            let ready = netpoll::take_ready_before_stealing(machine, p);
            tried(machine, Source::Network, ready)
        })
        .or_else(|| tried(machine, Source::Steal, steal::steal(machine, p)))
        .or_else(|| take_of_node(p, near::take_far()))
}

/// Goroutines that are to begin on a node: the first runs, the rest goes to the own ring.
#[inline]
fn take_of_node(p: &'static Processor, batch: Option<Batch<GRef>>) -> Option<GRef> {
    let mut batch = batch?;
    let first = batch.next();
    for g in batch {
        park::push_back(p, g);
    }
    history::anyone(Kind::Moved, 0);
    // As in `move_injected`.
    idle::wake_one_for(Wake::Share);
    first
}

/// What the monitor wants to run before all others.
fn take_urgent(p: &'static Processor) -> Option<GRef> {
    // ORDERING: Relaxed; requests carry no data.
    if p.attention.load(Relaxed) & URGENT != 0 {
        p.attention.fetch_and(!URGENT, Relaxed);
    }
    if p.urgent.is_empty() {
        return None;
    }
    let mut batch = p.urgent.take_all();
    let may_jump = batch.is_empty() || jumps::may_jump(p);
    let first = if may_jump { batch.next() } else { None };
    if batch.is_empty() {
        return first;
    }
    for g in batch {
        if may_jump {
            jumps::make_room(p, 1);
            park::push_front(p, g);
        } else {
            park::push_back(p, g);
        }
    }
    history::anyone(Kind::Moved, 0);
    // As in `move_injected`.
    idle::wake_one_for(Wake::Urgent);
    first
}

/// Every 61st round: one from the global queue, else one that waits for a file, else the ring's head
/// before the next slot, so that none of them starves behind goroutines that wake each other. A head
/// that was there when the global queue last went first goes before that one.
fn take_in_fairness_round(machine: &Machine, p: &'static Processor) -> Option<GRef> {
    if !(p.tick() + 1).is_multiple_of(FAIRNESS_ROUNDS) && !chaos::goes_out_of_turn(p) {
        return None;
    }
    move_injected();
    if let Some(g) = take_of_node(p, near::take_own(p).or_else(near::take_unserved)) {
        return Some(g);
    }
    tried(machine, Source::RingPassed, take_passed(p))
        .or_else(|| tried(machine, Source::GlobalFirst, take_one_global(p)))
        .or_else(|| tried(machine, Source::NetworkFirst, netpoll::take_ready(p)))
        .or_else(|| {
            // SAFETY: this machine holds `p`, inside the runtime.
            tried(machine, Source::RingFirst, unsafe { p.queue() }.pop_front())
        })
}

/// The ring's head, if the global queue has passed it before.
fn take_passed(p: &'static Processor) -> Option<GRef> {
    // SAFETY: this machine holds `p`, inside the runtime.
    let passed = unsafe { p.core() }.passed_by_global.take()?;
    // SAFETY: as above.
    let mut queue = unsafe { p.queue() };
    if queue.first_index() == passed { queue.pop_front() } else { None }
}

fn take_one_global(p: &'static Processor) -> Option<GRef> {
    let g = SCHEDULER.global.pop_front()?;
    // SAFETY: this machine holds `p`, inside the runtime.
    let first = unsafe { p.queue() }.first_index();
    // SAFETY: as above.
    unsafe { p.core() }.passed_by_global = Some(first);
    Some(g)
}

fn take_local(p: &'static Processor) -> Option<GRef> {
    let is_head_first = chaos::goes_out_of_turn(p);
    // SAFETY: this machine holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    if is_head_first && let Some(g) = queue.pop_front() {
        return Some(g);
    }
    match queue.pop()? {
        Popped::Next(g) | Popped::Ring(g) => Some(g),
    }
}

/// What plain threads have made runnable goes to the global queue, in order.
fn move_injected() {
    if !SCHEDULER.injected.is_empty() {
        SCHEDULER.global.append(SCHEDULER.injected.take_all());
        history::anyone(Kind::Moved, 0);
        // On their way they were in no queue that a machine about to sleep could see.
        idle::wake_one_for(Wake::Injected);
    }
}

fn take_injected(_: &'static Processor) -> Option<GRef> {
    move_injected();
    None
}

/// A share of the global queue: the first runs, the rest goes to the own ring.
fn take_global(p: &'static Processor) -> Option<GRef> {
    if SCHEDULER.global.is_empty() {
        return None;
    }
    let mut share = SCHEDULER.global.take_share(SCHEDULER.procs() as usize);
    let first = share.next()?;
    if !share.is_empty() {
        // SAFETY: this machine holds `p`, inside the runtime.
        unsafe { p.queue() }.push_back_batch(&mut share, usize::MAX);
        for g in share {
            park::push_back(p, g);
        }
        history::anyone(Kind::Moved, 0);
        // As in `move_injected`.
        idle::wake_one_for(Wake::Share);
    }
    Some(first)
}

/// A searcher that found work wakes the next one if it was the last.
fn stop_searching(machine: &Machine) {
    if machine.is_searching.replace(false) && SCHEDULER.searchers.found() {
        history::machine(Kind::Moved, machine, 0);
        idle::wake_one_for(Wake::Found);
    }
}
