//! What metrics are read from, each part looked at when somebody needs it, and once.

use gosched_sched::{
    Counters, Durations, GoroutineStates, MemoryStats, Preemptions, ProcessorState, Snapshot,
};
use std::cell::OnceCell;

pub(super) struct Reading {
    counters: OnceCell<Counters>,
    memory: OnceCell<MemoryStats>,
    preemptions: OnceCell<Preemptions>,
    snapshot: OnceCell<Snapshot>,
    states: OnceCell<GoroutineStates>,
}

impl Reading {
    pub(super) fn new() -> Reading {
        Reading {
            counters: OnceCell::new(),
            memory: OnceCell::new(),
            preemptions: OnceCell::new(),
            snapshot: OnceCell::new(),
            states: OnceCell::new(),
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        self.counters.get_or_init(gosched_sched::counters)
    }

    pub(super) fn memory(&self) -> &MemoryStats {
        self.memory.get_or_init(gosched_sched::memory_stats)
    }

    pub(super) fn preemptions(&self) -> &Preemptions {
        self.preemptions.get_or_init(gosched_sched::preemptions)
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        self.snapshot.get_or_init(gosched_sched::snapshot)
    }

    pub(super) fn states(&self) -> &GoroutineStates {
        self.states.get_or_init(gosched_sched::goroutine_states)
    }

    /// The sum of a number of each processor.
    pub(super) fn sum(&self, number: impl Fn(&ProcessorState) -> usize) -> u64 {
        self.snapshot().processors.iter().map(|p| number(p) as u64).sum()
    }

    /// Stops of the world for collections, and for other things.
    pub(super) fn pauses() -> (Durations, Durations) {
        let (to_collect, mut others) = gosched_sched::world_stop_times();
        for (all, part) in others.counts.iter_mut().zip(&to_collect.counts) {
            *all = all.saturating_sub(*part);
        }
        others.sum_ns = others.sum_ns.saturating_sub(to_collect.sum_ns);
        (to_collect, others)
    }
}
