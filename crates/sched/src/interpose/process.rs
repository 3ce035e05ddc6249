//! The ends and beginnings of processes: `exit` and `fork` call handlers under libc's locks.
//!
//! As in [`loader`](super), the goroutine that calls is not stopped by signal. Others are: one of
//! them may hold what a handler waits for.

use super::next::Next;
use crate::no_preempt::NoPreempt;
use std::ffi::c_int;

type Exit = unsafe extern "C" fn(c_int) -> !;
type Fork = unsafe extern "C" fn() -> libc::pid_t;

// SAFETY: libc's, as declared above.
static EXIT: Next<Exit> = unsafe { Next::new(c"exit") };
// SAFETY: as above.
static FORK: Next<Fork> = unsafe { Next::new(c"fork") };

/// libc's `exit`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn exit(code: c_int) -> ! {
    let next = EXIT.get();
    let _no_preempt = NoPreempt::new();
    match next {
        // SAFETY: by the caller.
        Some(next) => unsafe { next(code) },
        // SAFETY: ends the process at once.
        None => unsafe { libc::_exit(code) },
    }
}

/// libc's `fork`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> libc::pid_t {
    let Some(next) = FORK.get() else { return -1 };
    let _no_preempt = NoPreempt::new();
    // SAFETY: by the caller.
    unsafe { next() }
}
