//! Execution traces and profiles: what programs write is checked by Go's rules of order, with our own
//! checker always, and with Go's tools where they are installed.
//!
//! No test asserts how long anything takes.

#[allow(dead_code, reason = "shared with the tests of the library")]
#[path = "../it/child.rs"]
mod child;

mod calls;
mod errors;
mod go_tools;
mod profiles;
mod programs;
mod recorder;

use gosched_trace_format::{Verified, verify};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

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

/// A file in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }
}
