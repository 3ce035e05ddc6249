//! What is counted: per processor by its holder, read by anyone.

use crate::scheduler::SCHEDULER;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count with one writer at a time.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) const fn new() -> Count {
        Count(AtomicU64::new(0))
    }

    /// One more. Holder of the processor only: no read-modify-write.
    #[inline]
    pub(crate) fn add(&self) {
        // ORDERING: Relaxed for both; a statistic with one writer.
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    /// One more, from any thread.
    pub(crate) fn add_shared(&self) {
        // ORDERING: Relaxed; a statistic.
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Relaxed; a statistic.
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// One processor's counts.
        #[derive(Debug, Default)]
        pub(crate) struct PerProcessor {
            $(pub(crate) $name: Count,)+
        }

        /// What one processor has counted since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ProcessorCounters {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl PerProcessor {
            pub(crate) fn read(&self) -> ProcessorCounters {
                ProcessorCounters { $($name: self.$name.get(),)+ }
            }
        }

        /// Sums over all processors since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
            /// Goroutines made by plain threads, and by timers that these looked after.
            pub created_outside: u64,
            /// Processors taken from machines in declared blocking calls.
            pub declared_hand_offs: u64,
            /// Those of them that the machine gave away by itself, since its calls before had lasted.
            pub prompt_hand_offs: u64,
            /// Times that a machine came back from such a call and ran without a processor, until it
            /// entered the runtime or was stopped.
            pub runs_without_processor: u64,
            /// Processors taken from machines that blocked without saying so.
            pub undeclared_hand_offs: u64,
            /// Futex waits of goroutines in std's locks and others that go through libc's `syscall`.
            pub futex_waits: u64,
            /// `sched_yield` calls that became yields of goroutines.
            pub libc_yields: u64,
            /// Collections, see [`gc`](crate::gc).
            pub collections: u64,
            /// Those of them that nobody asked for.
            pub background_collections: u64,
            /// Changes of GOMAXPROCS that followed a change of the default.
            pub procs_updates: u64,
            /// Times that a machine went on with another processor, which had none, since there could
            /// be no more machines.
            pub machine_turns: u64,
            /// Times that a machine slept for a short time, since it had come too late for a goroutine
            /// in a next slot.
            pub lookouts: u64,
            /// Times that a processor was put to rest, since the kernel gave two machines one CPU.
            pub rests: u64,
            /// Times that somebody woke the monitor before its pause was over.
            pub monitor_calls: u64,
            /// Looks at files in passing, by machines and the monitor.
            pub polls: u64,
            /// Sleeps of idle machines in the poller.
            pub poll_sleeps: u64,
            /// Threads that run goroutines or could, now.
            pub machines: u64,
        }

        /// What the scheduler has done so far.
        #[must_use]
        pub fn counters() -> Counters {
            let mut sum = Counters::default();
            // Those out of service as well: what they have counted has happened.
            for p in SCHEDULER.all_processors() {
                $(sum.$name += p.counters.$name.get();)+
            }
            sum.created_outside = SCHEDULER.created_outside();
            sum.declared_hand_offs = SCHEDULER.counts.declared_hand_offs.get();
            sum.prompt_hand_offs = SCHEDULER.counts.prompt_hand_offs.get();
            sum.runs_without_processor = SCHEDULER.counts.runs_without_processor.get();
            sum.undeclared_hand_offs = SCHEDULER.counts.undeclared_hand_offs.get();
            sum.futex_waits = SCHEDULER.counts.futex_waits.get();
            sum.libc_yields = SCHEDULER.counts.libc_yields.get();
            sum.collections = SCHEDULER.counts.collections.get();
            sum.background_collections = SCHEDULER.counts.background_collections.get();
            sum.procs_updates = SCHEDULER.counts.procs_updates.get();
            sum.machine_turns = SCHEDULER.counts.machine_turns.get();
            sum.lookouts = SCHEDULER.counts.lookouts.get();
            sum.rests = SCHEDULER.counts.rests.get();
            sum.monitor_calls = SCHEDULER.counts.monitor_calls.get();
            (sum.polls, sum.poll_sleeps) = crate::netpoll::counts();
            sum.machines = u64::from(crate::fleet::live());
            sum
        }
    };
}

/// Counts that belong to no processor.
#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) declared_hand_offs: Count,
    pub(crate) prompt_hand_offs: Count,
    pub(crate) undeclared_hand_offs: Count,
    pub(crate) runs_without_processor: Count,
    pub(crate) futex_waits: Count,
    pub(crate) machine_turns: Count,
    pub(crate) lookouts: Count,
    pub(crate) rests: Count,
    pub(crate) libc_yields: Count,
    pub(crate) collections: Count,
    pub(crate) background_collections: Count,
    /// Stacks of waiting goroutines that lost their deep pages.
    pub(crate) shrunk_stacks: Count,
    pub(crate) procs_updates: Count,
    pub(crate) monitor_calls: Count,
}

impl Global {
    pub(crate) const fn new() -> Global {
        Global {
            declared_hand_offs: Count::new(),
            prompt_hand_offs: Count::new(),
            undeclared_hand_offs: Count::new(),
            runs_without_processor: Count::new(),
            futex_waits: Count::new(),
            machine_turns: Count::new(),
            lookouts: Count::new(),
            rests: Count::new(),
            libc_yields: Count::new(),
            collections: Count::new(),
            background_collections: Count::new(),
            shrunk_stacks: Count::new(),
            procs_updates: Count::new(),
            monitor_calls: Count::new(),
        }
    }
}

counters! {
    /// Goroutines made by goroutines and their timers.
    created,
    /// Goroutines ended.
    ended,
    /// Switches from goroutine to goroutine without the scheduler's stack.
    direct_switches,
    /// Goroutines that began on the stack of one that had just ended.
    runs_in_place,
    /// Rounds of the scheduler's loop that found a goroutine.
    scheduled,
    /// Goroutines stolen from other processors' rings (the first of each half).
    steals,
    /// Goroutines stolen from other processors' next slot.
    next_steals,
    /// Those of both that came from another NUMA node.
    far_steals,
    /// Local queues that overflowed.
    overflows,
    /// First runs that had to wait for a stack and thread-local block.
    fiber_waits,
    /// Timers fired.
    timers,
    /// Goroutines that made room at a runtime operation or safepoint because they were asked to.
    asked_yields,
}
