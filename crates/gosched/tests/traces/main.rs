//! Execution traces and profiles: what programs write is checked by Go's rules of order, with our own
//! checker always, and with Go's tools where they are installed.
//!
//! No test asserts how long anything takes.

#[allow(dead_code, reason = "shared with the tests of the library")]
#[path = "../it/child.rs"]
mod child;

mod errors;
mod go_tools;
mod profiles;
mod programs;
mod recorder;

use gosched_trace_format::{Verified, verify};
use std::sync::{Mutex, MutexGuard};

/// One trace at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[track_caller]
fn check(file: &[u8]) -> Verified {
    match verify(file, |_, _| {}) {
        Ok(verified) => verified,
        Err(fault) => panic!("{fault}"),
    }
}
