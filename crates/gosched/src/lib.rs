#![doc = include_str!("../../../README.md")]
//!
//! # Where things are
//!
//! | module | what | shaped as |
//! | --- | --- | --- |
//! | [`go`], [`run`] | start a goroutine; enter from a plain thread | Go's `go`; `thread::spawn` |
//! | [`thread`] | spawn, scope, park, sleep | `std::thread` |
//! | [`channel`] | channels; `select!` | crossbeam-channel |
//! | [`context`] | cancellation, deadlines, values | Go's `context` |
//! | [`sync`] | locks, groups, pools | `std::sync`; Go's `sync` and `golang.org/x/sync` |
//! | [`time`] | timers | Go's `time` |
//! | [`net`] | TCP, UDP, Unix sockets | `std::net`, `std::os::unix::net` |
//! | [`fs`], [`process`], [`io`] | what blocks, declared or polled | `std::fs`, `std::process`, `std::io::stdin` |
//! | [`signal`] | signals on a channel | Go's `os/signal` |
//! | [`runtime`] | GOMAXPROCS and its kin | Go's `runtime` |
//! | [`metrics`] | what the scheduler does, in numbers | Go's `runtime/metrics` |
//! | [`trace`] | execution traces for `go tool trace` | Go's `runtime/trace` |
//! | `pprof` (a feature) | profiles for `go tool pprof` | Go's `runtime/pprof` |
//! | [`Config`] | how the runtime starts | `GOSCHED=key=value,...` |
//! | [`Alloc`] | a wrapper for global allocators other than libc's | none |
//! | [`prelude`] | what most programs use, to import at once | |
//!
//! # Features
//!
//! None is needed, and none changes what the others see.
//!
//! | feature | what |
//! | --- | --- |
//! | `plant`, `history` | for the project's own tests: allocations and lost wake-ups planted in the runtime, a record of what the scheduler did; no part of the promises below |
//!
//! # Versions
//!
//! The oldest compiler is Rust 1.95 (`rust-version` in the manifest); a newer one may become the oldest
//! in a minor version, never in a patch. Before 1.0 a minor version may change interfaces; the
//! changelog says which. What is public in this crate is what is promised; the crates below
//! (`gosched-sched`, `gosched-channel` and so on) are its parts and may change in any version. Not promised
//! are the words of reports and dumps beyond those of Go, the order in which goroutines run, the keys of
//! `GOSCHED`, which are for operators and tests, and figures of any kind. Structs of counters and enums
//! of settings are `non_exhaustive`: new ones may come at any time.

#[doc(hidden)]
pub mod __private;
/// Channels and `select!`, in the shape of crossbeam-channel 0.5.
pub mod channel {
    pub use gosched_channel::*;
}
/// Cancellation, deadlines and values that go along with a call. Go's `context`.
pub mod context {
    pub use gosched_sync::context::*;
}
/// Files, in the shape of `std::fs`: declared blocking calls.
pub mod fs {
    pub use gosched_os::fs::*;
}
/// Standard input, in the shape of `std::io`: declared blocking calls.
pub mod io {
    pub use gosched_os::stdin::{Lines, Stdin, StdinLock, stdin};
}
pub mod net;
pub mod os;
/// Child processes, in the shape of `std::process`: who waits for one costs no thread.
pub mod process {
    pub use gosched_os::process::*;
}
pub mod doctor;
/// Profiles in pprof's format: where threads compute, where goroutines are, and what they wait for. Go's
/// package `runtime/pprof`.
///
/// With the feature `pprof`. Nothing is noted, and nothing costs anything, before it is asked for.
///
/// ```
/// use gosched::pprof::{self, Profile};
/// use std::{env, fs};
///
/// let path = env::temp_dir().join(format!("doc-{}.pprof", std::process::id()));
/// pprof::start_cpu_profile(fs::File::create(&path)?)?;
/// gosched::run(|| {
///     pprof::with_labels(&[("request", "42")], || {
///         let mut goroutines = Vec::new();
///         Profile::Goroutine.write_to(&mut goroutines, 1).unwrap();
///         assert!(goroutines.starts_with(b"goroutine profile: total 1"));
///     });
/// });
/// pprof::stop_cpu_profile()?; // and then: go tool pprof -top FILE
/// # fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(feature = "pprof")]
pub mod pprof {
    pub use gosched_pprof::*;
}
pub mod metrics;
pub mod prelude;
pub mod runtime;
/// Signals, as messages on a channel. Go's `os/signal`.
pub mod signal {
    pub use gosched_os::signal::*;
}
pub mod sync;
pub mod thread;
pub mod time;
pub mod trace;

mod config;
#[cfg(doctest)]
mod guide;
mod spawn;

pub use config::{Config, ConfigError, Tls};
pub use gosched_channel::{select, select_biased};
pub use gosched_macros::{main, preemptible, test};
pub use gosched_sched::run;
pub use gosched_sched::{Alloc, Limiter, blocking, hosted};
pub use spawn::go;
