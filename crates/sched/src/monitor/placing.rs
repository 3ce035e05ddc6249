//! Goroutines that were just woken while every processor is busy, and those that compute too long.

use super::Noted;
use crate::attention::{self, URGENT};
use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::machine::Machine;
use crate::observe::Whereabouts;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::timer::AT_ONCE;
use crate::{chaos, idle, preempt, rest, start};
use gosched_runq::List;
use std::sync::atomic::Ordering::Relaxed;

/// How long a goroutine must have computed before it is stopped for one that was just woken.
const COMPUTED_MIN_NS: u64 = 200_000;

/// What became of due timers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// How many goroutines were placed.
    pub(super) placed: usize,
    /// There are some, all of them of processors that have gone from goroutine to goroutine since the
    /// last look: who see to their timers themselves.
    pub(super) are_seen_to: bool,
}

/// Makes the goroutines of due timers runnable, if nobody sleeps in the poller to do it. Only some at
/// a time: a processor that comes to its urgent ones sees to the rest itself.
pub(super) fn run_due_timers(now: u64) -> Due {
    let (mut due, mut are_waiting) = (Due::default(), false);
    if SCHEDULER.is_polled() || SCHEDULER.processors().any(|p| !p.urgent.is_empty()) {
        return due;
    }
    for p in SCHEDULER.all_processors() {
        if p.timers.next_deadline() > now {
            continue;
        }
        if due.placed >= AT_ONCE {
            break;
        }
        if p.machine().is_some() {
            let lasted = p.slice.lasted(p, now);
            if lasted < COMPUTED_MIN_NS {
                // It goes from goroutine to goroutine, and looks at its timers in the next round.
                // ORDERING: Relaxed; a request that carries no data.
                p.attention.fetch_or(URGENT, Relaxed);
                due.are_seen_to = true;
                are_waiting |= lasted > 0;
                continue;
            }
        }
        history::anyone(Kind::Begun, 0);
        due.placed += place_all(p.timers.take_due(now, AT_ONCE - due.placed, None), now);
        history::anyone(Kind::Finished, 0);
    }
    due.are_seen_to &= due.placed == 0 && !are_waiting;
    due
}

/// While every processor is busy, what plain threads have made runnable is placed as well.
pub(super) fn run_injected(now: u64) -> usize {
    if SCHEDULER.injected.is_empty() || SCHEDULER.idle_count() > 0 {
        return 0;
    }
    history::anyone(Kind::Begun, 0);
    let count = place_all(SCHEDULER.injected.take_all().into_list(), now);
    history::anyone(Kind::Finished, 0);
    count
}

/// Places goroutines that this thread has in hand; how many.
pub(super) fn place_all(mut ready: List<GRef>, now: u64) -> usize {
    let count = ready.len();
    while let Some(g) = ready.pop_front() {
        place(g, now);
    }
    count
}

/// Gives a goroutine that was just woken to the processor whose goroutine has computed longest,
/// which makes room at its next runtime operation, or is stopped if it has computed for long. A
/// goroutine that was a hog itself before goes to the queue of all.
fn place(g: GRef, now: u64) {
    find_place(g, now);
    history::done_outside();
}

fn find_place(g: GRef, now: u64) {
    if SCHEDULER.idle_count() > 0 {
        // Where nobody sleeps in the poller somebody is about to look once more.
        SCHEDULER.injected.push(g);
        idle::wake_poller();
        return;
    }
    if g.take_used_slice() {
        SCHEDULER.global.push_back(g);
        return idle::wake_one();
    }
    let Some((lasted, p, machine)) = longest_running(now) else {
        return give_urgent(next_to_be_manned(), g);
    };
    give_urgent(p, g);
    let minimum = COMPUTED_MIN_NS.min(start::slice_ns() / 2);
    if preempt::is_on() && lasted >= minimum && computes(machine) {
        interrupt(machine, lasted);
    }
}

fn give_urgent(p: &Processor, g: GRef) {
    p.urgent.push(g);
    attention::ask(p, URGENT);
    // It may have become idle just now, its machine having looked before the push.
    idle::wake_one();
    // Or its machine has put it to rest: the fence in `wake_one` pairs with the one in `rest::go`, so
    // that either this is seen here, or what was pushed is seen there.
    if p.machine().is_none() {
        rest::end();
    }
}

/// Every processor is on its way from a blocked machine to the next, or about to be. What is urgent
/// waits for a machine, and must not wake this thread for it again and again.
fn next_to_be_manned() -> &'static Processor {
    let without_machine = SCHEDULER.processors().find(|p| p.machine().is_none());
    without_machine.unwrap_or_else(|| SCHEDULER.processor(0))
}

/// Stops the goroutine that computes on `machine` for an urgent one. Its slice goes on afterwards.
fn interrupt(machine: &Machine, lasted: u64) {
    if let Some(g) = machine.current() {
        g.set_slice_used(lasted);
    }
    preempt::request(machine);
}

/// The processor whose goroutine has computed longest, and for how long.
fn longest_running(now: u64) -> Option<(u64, &'static Processor, &'static Machine)> {
    SCHEDULER
        .processors()
        .filter_map(|p| Some((p.slice.lasted(p, now), p, p.machine()?)))
        .filter(|(.., m)| !m.ownership.is_in_call())
        .max_by_key(|(lasted, ..)| *lasted)
}

/// Goroutines in an urgent list whose processor has not come to it: the one it computes on may have
/// computed for long enough by now.
pub(super) fn press_urgent(now: u64) -> usize {
    if !preempt::is_on() {
        return 0;
    }
    let minimum = COMPUTED_MIN_NS.min(start::slice_ns() / 2);
    let mut count = 0;
    for p in SCHEDULER.processors().filter(|p| !p.urgent.is_empty()) {
        let Some(machine) = p.machine() else { continue };
        let lasted = p.slice.lasted(p, now);
        if lasted >= minimum && computes(machine) {
            interrupt(machine, lasted);
        }
        count += 1;
    }
    count
}

/// Whether the machine's thread is not asleep in the kernel: a signal would end its call early.
fn computes(machine: &Machine) -> bool {
    if machine.ownership.is_in_call() {
        return false;
    }
    match machine.eyes.look() {
        Whereabouts::Running => true,
        Whereabouts::InCall(_) | Whereabouts::Faulting => false,
        Whereabouts::Unknown => machine.watch.has_computed(&machine.eyes),
    }
}

/// Stops goroutines that have used up their slice, if something else could run. Where no signal can
/// stop them they are asked only, and yield at their next runtime operation.
pub(super) fn preempt_overdue(now: u64) -> usize {
    let slice = start::slice_ns();
    // Work in another processor's ring counts: this one would steal it.
    if slice == u64::MAX || !idle::is_work_in_sight() {
        return 0;
    }
    let slice = chaos::part_of_slice(slice);
    let mut count = 0;
    for p in SCHEDULER.processors() {
        let Some(machine) = p.machine() else { continue };
        let overdue = p.slice.lasted(p, now) >= slice;
        if overdue && !preempt::is_on() {
            p.ask_to_yield();
        } else if overdue && computes(machine) {
            p.ask_to_yield();
            preempt::request(machine);
            count += 1;
        }
    }
    count
}

/// Since when a processor is at the same tick. Monitor only.
#[derive(Debug, Default)]
pub(crate) struct SliceWatch {
    tick: Noted,
    since: Noted,
    /// The tick at the last question for rounds.
    counted: Noted,
}

impl SliceWatch {
    /// How many rounds `p` has made since the last question.
    pub(super) fn rounds(&self, p: &Processor) -> u64 {
        let tick = p.tick();
        u64::from(tick.wrapping_sub(self.counted.replace(u64::from(tick)) as u32))
    }

    /// How long the goroutine that runs on `p` has computed in its slice, as far as the monitor has
    /// seen.
    pub(super) fn lasted(&self, p: &Processor, now: u64) -> u64 {
        let tick = u64::from(p.tick()) + 1;
        if self.tick.replace(tick) != tick {
            let used = p.machine().and_then(Machine::current).map_or(0, |g| g.slice_used());
            self.since.set(now.saturating_sub(used));
        }
        now.saturating_sub(self.since.get())
    }
}
