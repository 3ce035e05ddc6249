//! The scheduler: goroutines (G) on machines (M, threads) that hold processors (P).
//!
//! Layer: `sched`. Uses `base`, `fiber`, `runq`, `protocol`, `poll`, `topology`. Knows nothing of channels or
//! sockets: everything that waits is built on [`block`] and [`Waiter::wake`].
//!
//! Reading order: a goroutine is made ([`mod@spawn`]), found ([`find`]), switched to ([`switch`]),
//! parks ([`mod@park`]) and is made ready, and ends ([`exit`]). A machine without work sleeps
//! ([`idle`]).
// Models take the files that they need, see `tests/loom_waits.rs`.
#![cfg(not(loom))]
#![cfg_attr(not(target_env = "gnu"), allow(dead_code, reason = "what serves `interpose`"))]

mod alloc;
mod attention;
mod background;
mod blocking;
mod blocks;
mod cancel;
mod chaos;
mod collect;
mod config;
mod contention;
mod counters;
mod critical;
mod current;
mod deadlock;
pub mod doctor;
mod dump;
mod exit;
mod fatal;
mod find;
mod fleet;
mod foresight;
mod forgotten;
mod forked;
#[cfg_attr(not(feature = "frames"), path = "frames/none.rs")]
mod frames;
mod freeze;
mod futex_queue;
mod gomaxprocs;
mod goroutine;
mod histogram;
mod history;
mod hosted;
mod identity;
mod idle;
#[cfg(target_env = "gnu")]
mod interpose;
#[cfg(not(target_env = "gnu"))]
#[path = "interpose/none.rs"]
mod interpose;
mod interrupt;
mod jumps;
mod labels;
mod last_spare;
mod latency;
#[cfg(target_env = "gnu")]
mod libc_threads;
mod limiter;
mod locked;
mod machine;
mod main_goroutine;
mod monitor;
mod names;
mod near;
mod netpoll;
mod no_preempt;
mod observe;
mod panic;
mod park;
mod plant;
mod preempt;
mod processor;
#[cfg(feature = "frames")]
#[doc(hidden)]
pub mod profile;
mod quit;
mod reason;
mod report;
mod rest;
mod rt;
mod scheduler;
mod shrink;
mod signal_mask;
mod slab;
mod snapshot;
mod spare_descriptors;
mod spawn;
mod start;
mod steal;
mod switch;
mod task;
mod threads;
mod timer;
mod trace;
mod transition;
mod wait;
mod wait_hook;
mod warm;
mod world;
mod yields;

pub use alloc::Alloc;
pub use attention::safepoint;
pub use background::set_background_gc;
pub use blocking::blocking;
pub use cancel::{Cancellation, Cancelled, Cancels, block_unless, block_until_unless};
pub use collect::{MemoryStats, free_os_memory, gc, memory_stats, set_cache_limit};
pub use config::{Config, ConfigError, Tls};
pub use contention::{age_caches, is_busy, may_spin, may_spin_briefly, set_cache_ager};
pub use counters::{Counters, ProcessorCounters, counters};
pub use critical::Critical;
#[doc(hidden)]
pub use current::is_in_runtime;
pub use current::{goroutine_id, is_goroutine};
pub use dump::{dump, dump_groups};
pub use gomaxprocs::{FormerProcs, default_procs, set_default_procs, set_procs};
pub use goroutine::GoroutineId;
pub use gosched_base::prefetch;
pub use histogram::Durations;
#[cfg(feature = "history")]
#[doc(hidden)]
pub use history::check_history;
#[cfg(any(test, feature = "history"))]
#[doc(hidden)]
pub use history::{Broken, Summary};
pub use hosted::hosted;
pub use labels::{Labels, labels, with_labels};
#[doc(hidden)]
pub use latency::is_latency_sampled;
pub use latency::{WAKES_TO_A_LATENCY, latencies};
pub use limiter::Limiter;
pub use locked::{lock_os_thread, unlock_os_thread};
pub use main_goroutine::{run, run_main};
pub use near::current_node;
pub use netpoll::{Direction, PollFd};
pub use no_preempt::NoPreempt;
pub use panic::panics;
pub use preempt::{Preemptions, preemptions};
pub use reason::WaitReason;
#[doc(hidden)]
pub use rest::{put_to_rest, resting};
pub use scheduler::{num_cpu, num_goroutine, procs};
pub use snapshot::{
    Activity, GoroutineStates, ProcessorState, Snapshot, goroutine_states, snapshot,
};
pub use spawn::{SpawnError, SpawnOptions, spawn};
pub use start::start;
pub use task::{JoinCtxError, JoinHandle, Thread};
pub use timer::{AfterFunc, after_func, sleep, sleep_ctx, sleep_until};
pub use trace::{
    FlightRecorder, Region, Task as TraceTask, TraceError, is_enabled as is_traced,
    log as trace_log, start as start_trace, stop as stop_trace,
};
pub use wait::{Waiter, block, block_until, park, park_until};
pub use wait_hook::{WaitEvent, WaitSide, set_wait_hook};
#[doc(hidden)]
pub use wait_hook::{is_wait_hooked, tell_wait};
#[doc(hidden)]
pub use world::pause_world;
pub use world::{WorldStops, world_stop_times, world_stops};
pub use yields::{give_way, give_way_if_alone, gosched, yield_now};
