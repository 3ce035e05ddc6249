//! The library from outside: what can fail in it is made to fail here if it is wrong.
//!
//! What ends a process, or needs one of its own with its own settings, is a program in
//! `testprogs/src/bin/sched_*.rs`. No test asserts how long anything takes.

mod alarms;
mod calls;
mod chaos;
mod child;
mod config;
mod deadlock;
mod dump;
mod ends;
mod gc;
mod history;
mod in_runtime;
mod load;
mod memory;
mod metrics;
mod nodes;
mod panics;
mod quota;
mod report;
mod reported;
mod rest;
mod starve;
mod stranger;
mod thread;
mod timers;
#[path = "../../../topology/tests/it/tree.rs"]
mod tree;
