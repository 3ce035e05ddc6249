//! The metrics: one line each, in the order of names.

use super::reading::Reading;
use super::{Description, ValueKind};
use gosched_sched::Durations;

pub(super) struct Metric {
    pub(super) description: Description,
    pub(super) get: Get,
}

/// How a value comes about.
#[derive(Clone, Copy)]
pub(super) enum Get {
    Number(fn(&Reading) -> u64),
    Times(fn(&Reading) -> Durations),
}

/// One that only grows.
const fn count(name: &'static str, text: &'static str, get: fn(&Reading) -> u64) -> Metric {
    number(name, text, true, get)
}

/// One that goes up and down.
const fn gauge(name: &'static str, text: &'static str, get: fn(&Reading) -> u64) -> Metric {
    number(name, text, false, get)
}

const fn number(
    name: &'static str,
    description: &'static str,
    cumulative: bool,
    get: fn(&Reading) -> u64,
) -> Metric {
    let kind = ValueKind::Uint64;
    Metric {
        description: Description { name, description, kind, cumulative },
        get: Get::Number(get),
    }
}

/// How often times of which length were seen.
const fn times(
    name: &'static str,
    description: &'static str,
    get: fn(&Reading) -> Durations,
) -> Metric {
    let kind = ValueKind::Float64Histogram;
    Metric {
        description: Description { name, description, kind, cumulative: true },
        get: Get::Times(get),
    }
}

pub(super) const METRICS: &[Metric] = &[
    count("/gc/cycles/automatic:gc-cycles", "Collections that nobody asked for.", |now| {
        now.counters().background_collections
    }),
    count("/gc/cycles/forced:gc-cycles", "Collections that the program asked for.", |now| {
        let counters = now.counters();
        counters.collections.saturating_sub(counters.background_collections)
    }),
    count("/gc/cycles/total:gc-cycles", "All collections.", |now| now.counters().collections),
    count(
        "/sched/calls/futex-waits:calls",
        "Waits of goroutines in locks of std and others that sleep in a futex.",
        |now| now.counters().futex_waits,
    ),
    count(
        "/sched/calls/sched-yields:calls",
        "Calls of sched_yield that became yields of goroutines.",
        |now| now.counters().libc_yields,
    ),
    count(
        "/sched/gomaxprocs/updates:changes",
        "Changes of GOMAXPROCS that followed the machine's CPUs and quotas.",
        |now| now.counters().procs_updates,
    ),
    gauge("/sched/gomaxprocs:threads", "GOMAXPROCS: goroutines that run at once.", |now| {
        now.snapshot().processors.len() as u64
    }),
    count("/sched/goroutines-created:goroutines", "Goroutines made since the start.", |now| {
        now.counters().created + now.counters().created_outside
    }),
    count("/sched/goroutines-ended:goroutines", "Goroutines that have ended.", |now| {
        now.counters().ended
    }),
    count("/sched/goroutines-panicked:goroutines", "Goroutines that ended by a panic.", |_| {
        gosched_sched::panics()
    }),
    gauge(
        "/sched/goroutines/not-in-go:goroutines",
        "Goroutines in declared blocking calls, or asleep in a futex.",
        |now| now.states().calling,
    ),
    gauge(
        "/sched/goroutines/runnable:goroutines",
        "Goroutines that could run and wait for a processor.",
        |now| now.states().runnable,
    ),
    gauge("/sched/goroutines/running:goroutines", "Goroutines that run.", |now| {
        now.states().running
    }),
    gauge(
        "/sched/goroutines/waiting:goroutines",
        "Goroutines that wait for something: a channel, a lock, a timer, a file.",
        |now| now.states().waiting,
    ),
    gauge("/sched/goroutines:goroutines", "Goroutines, now.", |_| {
        gosched_sched::num_goroutine() as u64
    }),
    count(
        "/sched/hand-offs/declared:processors",
        "Processors taken from threads in declared blocking calls.",
        |now| now.counters().declared_hand_offs,
    ),
    count(
        "/sched/hand-offs/prompt:processors",
        "Those of the declared ones that threads gave away by themselves, since calls had lasted.",
        |now| now.counters().prompt_hand_offs,
    ),
    count(
        "/sched/hand-offs/undeclared:processors",
        "Processors taken from threads that blocked without saying so.",
        |now| now.counters().undeclared_hand_offs,
    ),
    times(
        "/sched/latencies:seconds",
        "How long goroutines were runnable before they ran; one of 64 wakes is measured.",
        |_| gosched_sched::latencies(),
    ),
    count(
        "/sched/monitor/calls:calls",
        "Times that the monitor was woken before its pause was over.",
        |now| now.counters().monitor_calls,
    ),
    times(
        "/sched/pauses/total/gc:seconds",
        "How long the world was stopped for collections.",
        |_| Reading::pauses().0,
    ),
    times(
        "/sched/pauses/total/other:seconds",
        "How long the world was stopped for other things.",
        |_| Reading::pauses().1,
    ),
    count(
        "/sched/polls/passing:polls",
        "Looks at files in passing, by threads that look for work and by the monitor.",
        |now| now.counters().polls,
    ),
    count("/sched/polls/sleeping:polls", "Sleeps of idle threads in the poller.", |now| {
        now.counters().poll_sleeps
    }),
    count(
        "/sched/preemptions/cooperative:preemptions",
        "Goroutines that made room at their next operation because they were asked to.",
        |now| now.counters().asked_yields,
    ),
    count(
        "/sched/preemptions/deferred:preemptions",
        "Signals that found code that can't be stopped just there: the runtime, libc, a handler.",
        |now| {
            let tries = now.preemptions();
            tries.flagged + tries.in_libc + tries.in_user_handler + tries.elsewhere
        },
    ),
    count(
        "/sched/preemptions/forced:preemptions",
        "Blocked calls ended by a signal, so that somebody else could run at all.",
        |now| now.preemptions().forced,
    ),
    count(
        "/sched/preemptions/frozen:preemptions",
        "Goroutines stopped together with their thread, where they can't be moved.",
        |now| now.preemptions().frozen,
    ),
    count(
        "/sched/preemptions/in-place:preemptions",
        "Goroutines stopped between two instructions.",
        |now| now.preemptions().in_place,
    ),
    gauge("/sched/processors/idle:processors", "Processors that no thread holds.", |now| {
        now.sum(|p| usize::from(p.machine.is_none()))
    }),
    gauge("/sched/queues/global:goroutines", "Goroutines in the queue of all processors.", |now| {
        now.snapshot().global_queue as u64
    }),
    gauge("/sched/queues/local:goroutines", "Goroutines in the processors' own queues.", |now| {
        now.sum(|p| p.queued)
    }),
    count(
        "/sched/queues/overflows:overflows",
        "Times that half of a processor's full queue went to the queue of all.",
        |now| now.counters().overflows,
    ),
    count(
        "/sched/runs-without-processor:runs",
        "Times that a thread came back from a call that had lost it its processor, and ran on.",
        |now| now.counters().runs_without_processor,
    ),
    gauge("/sched/stacks/idle:stacks", "Stacks that are kept for goroutines to come.", |now| {
        now.memory().idle_stacks as u64
    }),
    gauge("/sched/stacks/live:stacks", "Stacks of goroutines, and idle ones.", |now| {
        now.memory().stacks as u64
    }),
    gauge("/sched/stacks/reserved:bytes", "Address space reserved for stacks.", |now| {
        now.memory().reserved_bytes as u64
    }),
    count("/sched/stacks/returned:stacks", "Stacks given back to the system.", |now| {
        now.memory().stacks_given_back
    }),
    count(
        "/sched/stacks/waits:goroutines",
        "Goroutines whose first run had to wait for a stack.",
        |now| now.counters().fiber_waits,
    ),
    count("/sched/steals/far:steals", "Steals from processors of other NUMA nodes.", |now| {
        now.counters().far_steals
    }),
    count("/sched/steals/near:steals", "Steals from processors of the same NUMA node.", |now| {
        let counters = now.counters();
        (counters.steals + counters.next_steals).saturating_sub(counters.far_steals)
    }),
    count(
        "/sched/steals/next:steals",
        "Those of both that took what was about to run next.",
        |now| now.counters().next_steals,
    ),
    count(
        "/sched/switches/direct:switches",
        "Switches from goroutine to goroutine without the scheduler's stack.",
        |now| now.counters().direct_switches,
    ),
    count(
        "/sched/switches/in-place:switches",
        "Goroutines that began on the stack of one that had just ended.",
        |now| now.counters().runs_in_place,
    ),
    count(
        "/sched/switches/scheduled:switches",
        "Goroutines that were chosen by the scheduler's loop.",
        |now| now.counters().scheduled,
    ),
    gauge("/sched/threads/idle:threads", "Threads that sleep until there is a goroutine.", |now| {
        now.snapshot().idle_machines.into()
    }),
    gauge("/sched/threads/machines:threads", "Threads that run goroutines or could.", |now| {
        now.snapshot().machines.into()
    }),
    gauge("/sched/threads/searching:threads", "Threads that look for work.", |now| {
        now.snapshot().searching_machines.into()
    }),
    gauge("/sched/threads/total:threads", "Threads of the runtime.", |now| {
        now.snapshot().threads.into()
    }),
    gauge("/sched/timers/armed:timers", "Timers that are to fire.", |now| now.sum(|p| p.timers)),
    count("/sched/timers/fired:timers", "Timers that have woken a goroutine.", |now| {
        now.counters().timers
    }),
];
