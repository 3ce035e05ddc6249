//! Taking work from other processors.
//!
//! Four rounds over all of them in a pseudo-random order (start and co-prime step, as Go's
//! `stealOrder`); timers and next slots only in the last. A next slot is left alone for 3 us: its
//! goroutine is about to run where it is, and taking it would tear a ping-pong pair apart. Go
//! sleeps for that time, which costs 50 us under the default timer slack; here it is spun. The system
//! call by which the victim wakes the thief may last longer, so its time is added, up to 50 us. A thief
//! that finds that its victim has switched meanwhile keeps a lookout next, see `idle`.
//!
//! Where there are several caches or nodes (`near`) each round goes from near to far, and the first
//! two stay on the node. Before the third, if there is work elsewhere, a thief goes on looking at its
//! own node for 50 us, and lets other threads have the CPU meanwhile. What it sees on a node that has
//! idle processors it leaves there, and wakes one of those.

use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::near::{self, LEVELS_OF_A_NODE, ROUNDS_AT_HOME};
use crate::park;
use crate::plant;
use crate::plant::Place;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{idle, world};
use gosched_base::{Rng, os};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ROUNDS: u32 = 4;
const NEXT_GRACE_NS: u64 = 3_000;
/// The same with the time added in which the victim wakes somebody, mostly the thief.
const NEXT_GRACE_MAX_NS: u64 = 50_000;
/// At how many processors a machine looks before it polls; each may be a cache line from far away.
const LOOKS_AT: u32 = 4;
/// How long a thief waits for near work before it takes far work.
const PATIENCE_NS: u64 = 50_000;

/// Written by: the start. Read by: whoever looks for work.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// From now on processors keep what is in their rings (`GOSCHED=steal=0`). Timers, and what the
/// monitor gave away, are still taken: they would wait for nobody otherwise.
pub(crate) fn switch_off() {
    // ORDERING: Relaxed; written by the start, before there is a second machine.
    IS_OFF.store(true, Relaxed);
}

/// Whether rings are left alone.
pub(crate) fn is_off() -> bool {
    // ORDERING: Relaxed; see `switch_off`.
    IS_OFF.load(Relaxed)
}

/// Steals a goroutine, if searching is allowed (see `Searchers`) and there is one.
pub(crate) fn steal(machine: &'static Machine, p: &'static Processor) -> Option<GRef> {
    machine.sees_pair.set(false);
    if !start_searching(machine) {
        run_timers_out_of_service(p);
        // SAFETY: this machine holds `p`, inside the runtime.
        return unsafe { p.queue() }.pop_front();
    }
    let found = (1..=ROUNDS).find_map(|round| round_trip(machine, p, round));
    if found.is_some() {
        plant::here(Place::Steal);
    }
    found
}

/// Whether another processor's ring has something, as far as a look at a few of them shows, and the
/// caller may take it. A hint: it may find that somebody was faster.
pub(crate) fn is_worth_it(machine: &Machine, p: &Processor) -> bool {
    let procs = SCHEDULER.procs();
    if procs == 1 || is_off() || !(machine.is_searching.get() || SCHEDULER.searchers.count() == 0) {
        return false;
    }
    let first = p.id + 1 + p.tick() % (procs - 1);
    let mut others = (0..procs.min(LOOKS_AT)).map(|i| SCHEDULER.processor((first + i) % procs));
    others.any(|other| other.id != p.id && !other.ring.is_empty())
}

fn start_searching(machine: &Machine) -> bool {
    if machine.is_searching.get() {
        return true;
    }
    let procs = SCHEDULER.procs();
    let busy = procs.saturating_sub(SCHEDULER.idle_count());
    let may = procs > 1 && SCHEDULER.searchers.join(busy);
    machine.is_searching.set(may);
    may
}

/// Looks at every other processor once, near ones first; in the first rounds at near ones only.
fn round_trip(machine: &Machine, p: &'static Processor, round: u32) -> Option<GRef> {
    let is_last = round == ROUNDS;
    if is_last {
        run_timers_out_of_service(p);
    }
    match near::for_thieves() {
        None => look_at_some(machine, p, is_last, |_| true),
        Some(levels) => {
            let look_at = |level| {
                look_at_some(machine, p, is_last, |victim| {
                    levels.between(p.place, victim.place) == level
                })
            };
            let near = || (0..LEVELS_OF_A_NODE).find_map(look_at);
            if round == ROUNDS_AT_HOME + 1
                && is_work_far(p)
                && let Some(g) = wait_at_home(p, near)
            {
                return Some(g);
            }
            (0..levels.reach(round)).find_map(look_at)
        }
    }
}

/// Whether other nodes have work.
fn is_work_far(p: &Processor) -> bool {
    let is_far = |other: &Processor| other.place.node != p.place.node;
    SCHEDULER.processors().any(|other| is_far(other) && !other.ring.is_empty())
}

/// Looks near by again and again for a while, and lets other threads have the CPU meanwhile: those
/// of near processors may be about to publish something.
fn wait_at_home(p: &Processor, mut near: impl FnMut() -> Option<GRef>) -> Option<GRef> {
    let until = os::monotonic_ns() + PATIENCE_NS;
    // What lies in the queues of all is for searchers like this one.
    let may_wait = || !world::must_stop(p) && !SCHEDULER.has_work_for_all();
    while os::monotonic_ns() < until && may_wait() {
        os::yield_cpu();
        if let Some(g) = near() {
            return Some(g);
        }
    }
    None
}

/// Looks once at every other processor that is `meant`.
fn look_at_some(
    machine: &Machine,
    p: &'static Processor,
    is_last: bool,
    meant: impl Fn(&Processor) -> bool,
) -> Option<GRef> {
    // SAFETY: this machine holds `p`, inside the runtime.
    let rng = &mut unsafe { p.core() }.rng;
    for victim in Order::new(rng, SCHEDULER.procs()) {
        let victim = SCHEDULER.processor(victim);
        if victim.id == p.id || !meant(victim) {
            continue;
        }
        if is_last {
            victim.timers.run_due(p);
            // SAFETY: this machine holds `p`, inside the runtime.
            if let Some(g) = unsafe { p.queue() }.pop_front() {
                return Some(g);
            }
        }
        if is_for_its_node(p, victim) {
            continue;
        }
        if let Some(g) = steal_urgent(victim, p) {
            return Some(g);
        }
        if is_off() {
            continue;
        }
        // SAFETY: this machine holds `p`, inside the runtime.
        let mut own = unsafe { p.queue() };
        if let Some(g) = victim.ring.steal_half(&mut own) {
            p.counters.steals.add();
            count_if_far(p, victim);
            return Some(g);
        }
        if is_last && let Some(g) = steal_next(machine, victim) {
            p.counters.next_steals.add();
            count_if_far(p, victim);
            return Some(g);
        }
    }
    None
}

/// Whether `victim` is far, and its node has an idle processor, which is woken for what is there.
fn is_for_its_node(p: &Processor, victim: &Processor) -> bool {
    let node = victim.place.node;
    node != p.place.node && !victim.ring.is_empty() && idle::wake_one_of(node)
}

fn count_if_far(p: &Processor, victim: &Processor) {
    if p.place.node != victim.place.node {
        p.counters.far_steals.add();
    }
}

/// Processors out of service may have left timers behind.
fn run_timers_out_of_service(p: &'static Processor) {
    for id in SCHEDULER.procs()..SCHEDULER.made() {
        SCHEDULER.processor(id).timers.run_due(p);
    }
}

/// Takes what the monitor gave to a processor that has not come to it yet.
fn steal_urgent(victim: &Processor, p: &'static Processor) -> Option<GRef> {
    if victim.urgent.is_empty() {
        return None;
    }
    let mut batch = victim.urgent.take_all();
    let first = batch.next();
    for g in batch {
        park::push_front(p, g);
    }
    first
}

/// Takes the victim's next slot if the same goroutine stays in it for the grace period. Of a pair
/// that wake each other one is nearly always there, so that the victim must not switch meanwhile.
fn steal_next(machine: &Machine, victim: &Processor) -> Option<GRef> {
    let tick = victim.tick();
    let seen = victim.ring.peek_next()?;
    if victim.machine().is_some() {
        wait_for_grace(victim);
        if victim.tick() != tick {
            machine.sees_pair.set(true);
            return None;
        }
    }
    victim.ring.steal_next(seen)
}

/// Spins for the grace time, and on while the victim is in the middle of waking somebody and for the
/// grace time after it. The victim's line is read once in that time: it writes there, and would wait
/// for a thief that looks all the time.
fn wait_for_grace(victim: &Processor) {
    let begin = os::monotonic_ns();
    let (mut until, mut was_waking) = (begin, false);
    loop {
        until += NEXT_GRACE_NS;
        while os::monotonic_ns() < until {
            std::hint::spin_loop();
        }
        let is_waking = victim.is_waking();
        if !(is_waking || was_waking) || until >= begin + NEXT_GRACE_MAX_NS {
            return;
        }
        was_waking = is_waking;
    }
}

/// Every processor's number once: a random start and a step that has no common divisor with their
/// count.
struct Order {
    at: u32,
    step: u32,
    left: u32,
    count: u32,
}

impl Order {
    fn new(rng: &mut Rng, count: u32) -> Order {
        let mut step = 1 + rng.below(count);
        while gcd(step, count) != 1 {
            step = 1 + rng.below(count);
        }
        Order { at: rng.below(count), step, left: count, count }
    }
}

impl Iterator for Order {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let now = self.at;
        self.at = (self.at + self.step) % self.count;
        Some(now)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::Order;
    use gosched_base::Rng;

    #[test]
    fn each_is_looked_at_once_whatever_their_number() {
        let mut rng = Rng::new(7);
        let mut firsts = [0_u32; 65];
        for count in 1..=64 {
            for _ in 0..20 {
                let order: Vec<u32> = Order::new(&mut rng, count).collect();
                firsts[order[0] as usize] += 1;
                let mut sorted = order;
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count), "of {count}");
            }
        }
        assert!(firsts[..64].iter().filter(|times| **times > 0).count() > 32, "{firsts:?}");
    }
}
