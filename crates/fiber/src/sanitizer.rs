//! What AddressSanitizer and ThreadSanitizer must be told about stacks.
//!
//! Both keep a record of the thread that runs: where its stack is, and which functions it is in.
//! When code goes on on another stack they have to know. Builds for them set
//! `--cfg gosched_asan` or `gosched_tsan`; in all others this is empty.
//!
//! They keep that record in the thread's own thread-locals, so only shared ones
//! ([`Kind::Shared`](crate::tls::Kind::Shared)) work with them.
//!
//! A context has eight bytes to spare; what does not fit lies elsewhere.
//!
//! Invariants
//! * I1. A [`Shadow`] is used as its context is: by whoever holds the goroutine.
//! * I2. Between `leave` and the switch no function that ThreadSanitizer counts is entered or left.

use crate::arch::Context;

#[cfg_attr(gosched_asan, path = "sanitizer/address.rs")]
#[cfg_attr(gosched_tsan, path = "sanitizer/thread.rs")]
#[cfg_attr(not(any(gosched_asan, gosched_tsan)), path = "sanitizer/none.rs")]
mod imp;

#[cfg(gosched_asan)]
pub(crate) use imp::arrive_first;
pub(crate) use imp::{Shadow, arrive, forget, leave};

impl Context {
    /// What [`fresh`](Context::fresh) is about to make begins on the stack from `limit` to `top`.
    #[inline(always)]
    pub(crate) fn begin_on_stack(&mut self, limit: usize, top: usize) {
        self.shadow().begin(limit, top);
    }

    /// The next switch away from this context is the last.
    #[inline(always)]
    pub fn end_on_stack(&mut self) {
        self.shadow().end();
    }

    /// This context was left for good. Called on another stack.
    #[inline(always)]
    pub fn ended_on_stack(&mut self) {
        self.shadow().ended();
        self.stands_nowhere();
    }

    /// Makes this context, which has not begun, that of the code which runs as `old`, whose own has
    /// ended.
    #[inline(always)]
    pub fn take_over(&mut self, old: &mut Context) {
        self.set_fs(old.fs());
        old.stands_nowhere();
        std::mem::swap(self.shadow(), old.shadow());
    }
}
