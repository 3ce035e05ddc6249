//! Files, child processes, standard input and signals.
//!
//! Layer: `os`. Uses `channel`, `net` and `sched`. What the poller can watch (pipes of children,
//! their end) parks the goroutine; for the rest (files, standard input) a goroutine says that it
//! blocks, and its processor goes on with others.
// Models take the files that they need, see `tests/loom_signals.rs`.
#![cfg(not(loom))]

pub mod fs;
pub mod process;
pub mod signal;
pub mod stdin;
