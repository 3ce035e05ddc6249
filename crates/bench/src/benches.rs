//! The table of benches: one file for each.

use crate::args::{Args, UsageError};
use crate::report::Report;

mod alloc_hogs;
mod blocking;
mod chans;
mod fanout;
mod forensics;
mod forkjoin_fib;
mod hogs_share;
mod http_hello;
mod idle;
mod locks;
mod net_pingpong;
mod operations;
mod parked_memory;
mod pingpong;
mod preempt_latency;
mod println;
mod ring;
mod scaling;
mod select4;
mod serve;
mod sieve;
mod skynet;
mod sleep_accuracy;
mod spawn_burst;
mod spawn_join;
mod std_mutex;
mod steal_uneven;
mod stop_the_world;
mod switch;
mod syscall_overhead;
mod timer_churn;
mod timers_sleep;
mod yields;

/// What running a bench comes to; a wrong result panics instead.
pub(crate) type Outcome = Result<Report, UsageError>;

pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) run: fn(&Args) -> Outcome,
}

/// Where a bench runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a goroutine, as the peers' run in a task.
    Goroutine,
    /// In a goroutine of a runtime with one processor, whatever was asked for.
    OneProcessor,
    /// On the main thread, outside the runtime.
    Thread,
}

use Place::{Goroutine, OneProcessor, Thread};

const fn bench(name: &'static str, place: Place, run: fn(&Args) -> Outcome) -> Bench {
    Bench { name, place, run }
}

/// All benches, in the peers' order.
pub(crate) const ALL: &[Bench] = &[
    bench("spawn_join", Goroutine, spawn_join::run),
    bench("spawn_burst", Goroutine, spawn_burst::run),
    bench("parked_memory", Goroutine, parked_memory::run),
    bench("yield2", OneProcessor, |args| yields::run(args, 2)),
    bench("yield100", OneProcessor, |args| yields::run(args, 100)),
    bench("pingpong", Goroutine, pingpong::run),
    bench("net_pingpong", Goroutine, net_pingpong::run),
    bench("chan_spsc", Goroutine, |args| chans::run(args, 1)),
    bench("chan_mpmc", Goroutine, |args| chans::run(args, 4)),
    bench("select4", Goroutine, select4::run),
    bench("mutex", Goroutine, locks::mutex),
    bench("rwmutex", Goroutine, locks::rwmutex),
    bench("mutex_scaling", Goroutine, locks::mutex_scaling),
    bench("lock_wait", Goroutine, locks::lock_wait),
    bench("rwlock_wait", Goroutine, locks::rwlock_wait),
    bench("fanout", Goroutine, fanout::run),
    bench("skynet", Goroutine, skynet::run),
    bench("ring", Goroutine, ring::run),
    bench("sieve", Goroutine, sieve::run),
    bench("forkjoin_fib", Goroutine, forkjoin_fib::run),
    bench("timers_sleep", Goroutine, timers_sleep::run),
    bench("timer_churn", Goroutine, timer_churn::run),
    bench("sleep_accuracy", Goroutine, sleep_accuracy::run),
    bench("preempt_latency", Thread, preempt_latency::run),
    bench("hogs_share", Goroutine, hogs_share::run),
    bench("alloc_hogs", Goroutine, alloc_hogs::run),
    bench("println", Goroutine, println::run),
    bench("forensics", Goroutine, forensics::run),
    bench("blocking", Goroutine, blocking::run),
    bench("syscall_overhead", Goroutine, syscall_overhead::run),
    bench("std_mutex", Goroutine, std_mutex::run),
    bench("stop_the_world", Goroutine, stop_the_world::run),
    bench("steal_uneven", Goroutine, steal_uneven::run),
    bench("idle", Thread, idle::run),
    bench("switch", Thread, switch::run),
    bench("serve_echo", Goroutine, serve::echo),
    bench("http_hello", Goroutine, http_hello::run),
    bench("http_raw", Goroutine, serve::http),
    bench("scaling", Goroutine, scaling::run),
    bench("operations", Goroutine, operations::run),
];
