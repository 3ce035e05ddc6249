//! The child of a `fork` has no runtime.
//!
//! Only the thread that called `fork` exists in the child: no machine, no monitor, nobody who would
//! run a goroutine. So the thread becomes a plain one there, and whatever needs the runtime says so
//! and aborts, instead of waiting for ever. `exec` and `_exit` work, and so does what `Command` does
//! between the two.

use gosched_base::Stderr;
use gosched_fiber::host;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// From here on children know that they are such. Once, at the start.
pub(crate) fn watch() {
    // SAFETY: the function is made for this. It fails only without memory; then a child that uses
    // the runtime waits for ever.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    // ORDERING: Relaxed for this and the one below; the child has one thread, and makes others
    // later.
    IS_CHILD.store(true, Relaxed);
    if !host::current_machine().is_null() {
        // SAFETY: the thread is a machine's. It runs the goroutine that called `fork` to the end
        // of the process, and carries nothing else.
        unsafe { host::unbind() };
    }
}

/// Aborts in the child of a fork. For what plain threads do with the runtime.
#[inline]
pub(crate) fn check() {
    // ORDERING: Relaxed; as above.
    if IS_CHILD.load(Relaxed) {
        refuse();
    }
}

#[cold]
fn refuse() -> ! {
    let _ = writeln!(
        Stderr,
        "fatal error: the child of a fork can't use gosched: the threads that ran goroutines are \
         not in it; only exec or _exit may follow a fork"
    );
    std::process::abort()
}
