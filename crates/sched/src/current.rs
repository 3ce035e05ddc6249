//! The goroutine that runs the calling code.

use crate::goroutine::{GRef, GoroutineId};
use crate::machine::Machine;
use gosched_fiber::host;
use gosched_protocol::Status;
use std::ptr::NonNull;

/// The calling goroutine; `None` on a plain thread.
#[inline]
pub(crate) fn current() -> Option<GRef> {
    // SAFETY: hosts of this process are machines, with that word at that offset.
    let g = unsafe { host::current_word::<{ Machine::CURRENT }>() };
    let g = NonNull::new(g as *mut crate::goroutine::Goroutine)?;
    // SAFETY: the word holds addresses of descriptors only.
    Some(unsafe { GRef::new(g) })
}

/// The calling goroutine, if it is outside the runtime. (A signal handler may call that has
/// interrupted it inside.)
pub(crate) fn current_outside() -> Option<GRef> {
    // SAFETY: hosts of this process are machines; the flag is the lower half of the word there, and
    // the ownership word the upper one.
    let word = unsafe { host::current_word::<{ Machine::IN_RUNTIME }>() };
    if word as u32 != 0 {
        return None;
    }
    current()
}

/// As [`current_outside`], and not in a declared call either.
pub(crate) fn current_undeclared() -> Option<GRef> {
    current_outside().filter(|g| g.status.get() == Status::Running)
}

/// The calling goroutine's number; `None` on a plain thread.
///
/// Go hides this number; here it is what dumps and panics print.
#[must_use]
pub fn goroutine_id() -> Option<GoroutineId> {
    current().map(|g| g.id())
}

/// Whether the caller is a goroutine (else a plain thread).
#[must_use]
pub fn is_goroutine() -> bool {
    current().is_some()
}

/// Whether the calling thread is inside the runtime. For a test's allocator.
#[doc(hidden)]
#[must_use]
pub fn is_in_runtime() -> bool {
    // SAFETY: hosts of this process are machines, with eight aligned bytes at that offset.
    let word = unsafe { host::current_word::<{ Machine::IN_RUNTIME }>() };
    // The flag is the lower half on a little-endian machine.
    word as u32 != 0
}
