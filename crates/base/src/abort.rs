//! The third error level: an invariant of the runtime broke.
//!
//! Neither an error value nor a panic will do then: both run code that trusts the state. The
//! message goes straight to descriptor 2, a hook may add the table of goroutines, machines and
//! processors, and the process aborts.

use crate::os;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Aborts the process with a message; for broken invariants of the runtime itself.
///
/// ```should_panic
/// # // an abort can't be shown in a doc test; the macro's form is what is checked here
/// # if false {
/// gosched_base::rt_abort!("ready: goroutine {} is not waiting", 7);
/// # }
/// # panic!()
/// ```
#[macro_export]
macro_rules! rt_abort {
    ($($arg:tt)*) => { $crate::abort_with(::core::format_args!($($arg)*)) };
}

/// A writer to descriptor 2 that neither locks nor allocates.
#[derive(Debug, Default)]
pub struct Stderr;

impl Write for Stderr {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        os::write_all(2, s.as_bytes());
        Ok(())
    }
}

static HOOK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Registers what prints the scheduler's state before an abort.
pub fn set_abort_hook(hook: fn(&mut Stderr)) {
    // ORDERING: Relaxed; a function pointer carries no data with it.
    HOOK.store(hook as *mut (), Ordering::Relaxed);
}

/// What [`rt_abort!`] calls.
#[cold]
#[inline(never)]
pub fn abort_with(message: fmt::Arguments<'_>) -> ! {
    let mut out = Stderr;
    let _ = writeln!(out, "gosched: internal error: {message}");
    // ORDERING: Relaxed; see `set_abort_hook`. Taken, so that a hook that aborts ends here.
    let hook = HOOK.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if !hook.is_null() {
        // SAFETY: only `set_abort_hook` stores here, and it stores a `fn(&mut Stderr)`.
        let hook: fn(&mut Stderr) = unsafe { std::mem::transmute(hook) };
        hook(&mut out);
    }
    std::process::abort()
}
