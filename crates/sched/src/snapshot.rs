//! The scheduler at one moment, for metrics and pages.
//!
//! Everything is in motion while it is read, and read without any lock: who asks may be a goroutine,
//! which can be stopped at any instruction, or a plain thread. So numbers need not add up.

use crate::counters::ProcessorCounters;
use crate::goroutine::GoroutineId;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{fleet, slab, world};
use gosched_protocol::Status;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

/// Queues, threads and processors, now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Each processor in service: as many as GOMAXPROCS.
    pub processors: Vec<ProcessorState>,
    /// Goroutines in the queue of all processors.
    pub global_queue: usize,
    /// Threads of the runtime, those that run no goroutines included.
    pub threads: u32,
    /// Threads that run goroutines or could.
    pub machines: u32,
    /// Those of them that sleep.
    pub idle_machines: u32,
    /// Those of them that look for work.
    pub searching_machines: u32,
    /// Whether the world is being stopped.
    pub is_stopping: bool,
}

/// A processor, now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessorState {
    /// Its number.
    pub id: u32,
    /// What happens on it.
    pub activity: Activity,
    /// The thread that holds it, by its number as a machine.
    pub machine: Option<u32>,
    /// The goroutine that runs there, or is in a declared call.
    pub goroutine: Option<GoroutineId>,
    /// Where that one was spawned.
    pub site: Option<&'static Location<'static>>,
    /// Goroutines in its queue.
    pub queued: usize,
    /// Timers that it looks after.
    pub timers: usize,
    /// What it has counted.
    pub counters: ProcessorCounters,
}

/// What happens on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// No thread holds it.
    Idle,
    /// Its thread chooses or looks for a goroutine.
    Scheduling,
    /// A goroutine runs.
    Running,
    /// Its goroutine is in a declared call, which has not lost it the processor.
    Calling,
}

/// Looks at queues, threads and processors.
#[must_use]
pub fn snapshot() -> Snapshot {
    Snapshot {
        processors: SCHEDULER.processors().map(state).collect(),
        global_queue: SCHEDULER.global.len(),
        // ORDERING: Relaxed; a statistic.
        threads: SCHEDULER.known_threads.load(Relaxed),
        machines: fleet::live(),
        idle_machines: SCHEDULER.sleeping_hint() + u32::from(SCHEDULER.is_polled()),
        searching_machines: SCHEDULER.searchers.count(),
        is_stopping: world::is_stopping(),
    }
}

fn state(p: &'static Processor) -> ProcessorState {
    let machine = p.machine();
    let g = machine.and_then(Machine::current);
    let activity = match (machine, g.map(|g| g.status.get())) {
        (None, _) => Activity::Idle,
        (Some(_), Some(Status::Syscall)) => Activity::Calling,
        (Some(_), Some(_)) => Activity::Running,
        (Some(_), None) => Activity::Scheduling,
    };
    ProcessorState {
        id: p.id,
        activity,
        machine: machine.map(|machine| machine.id),
        goroutine: g.map(|g| g.id()),
        site: g.and_then(|g| g.origin()).map(|(site, _)| site),
        queued: p.ring.len(),
        timers: p.timers.len(),
        counters: p.counters.read(),
    }
}

/// How many goroutines are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoroutineStates {
    /// In a queue, or on the way to one.
    pub runnable: u64,
    /// On a processor.
    pub running: u64,
    /// In declared calls.
    pub calling: u64,
    /// Waiting, for whatever.
    pub waiting: u64,
    /// The waiting ones by what they wait for; reasons that nobody has are left out.
    pub by_reason: Vec<(WaitReason, u64)>,
}

/// Counts goroutines by state. It looks at every descriptor there ever was at a time: some 30 ns each.
#[must_use]
pub fn goroutine_states() -> GoroutineStates {
    let mut states = GoroutineStates::default();
    let mut reasons = [0_u64; 256];
    slab::for_each(|g| match g.status.get() {
        Status::Runnable => states.runnable += 1,
        Status::Running => states.running += 1,
        Status::Syscall => states.calling += 1,
        Status::Waiting => {
            states.waiting += 1;
            reasons[g.reason() as usize] += 1;
        }
        Status::Dead | Status::Idle => {}
    });
    let all = WaitReason::all().iter().map(|reason| (*reason, reasons[*reason as usize]));
    states.by_reason = all.filter(|(_, count)| *count > 0).collect();
    states
}
