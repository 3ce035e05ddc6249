//! A thread's right to carry coroutines.

use crate::host::{self, Host};
use std::cell::Cell;
use std::pin::Pin;
use std::ptr;

/// The calling thread's right to carry coroutines. [`Coroutine::resume`](crate::Coroutine::resume)
/// makes one for each call where there is none; a loop that resumes often makes its own first.
#[derive(Debug)]
#[repr(C)]
pub struct Carrier {
    host: Host,
    /// The coroutine that runs; null between two.
    current: Cell<*mut ()>,
}

impl Carrier {
    /// Makes the calling thread a carrier until the value is dropped, on the same thread.
    ///
    /// # Panics
    /// In a coroutine, and on a thread that is a carrier or carries goroutines.
    #[must_use]
    pub fn new() -> Pin<Box<Carrier>> {
        assert!(host::current().is_null(), "this thread carries coroutines or goroutines already");
        let carrier = Box::pin(Carrier {
            host: Host::unbound_carrier(),
            current: Cell::new(ptr::null_mut()),
        });
        let host = (&raw const carrier.host).cast_mut();
        // SAFETY: pinned until `drop` unbinds it; a carrier is neither Send nor Sync, and was not
        // made in a coroutine, which could move, so that is on this thread. It has no host yet.
        unsafe { host::bind(host) };
        carrier
    }

    /// The calling thread's, if it has one. Not to be kept across a switch.
    ///
    /// # Panics
    /// On a thread that carries goroutines.
    pub(super) fn current() -> Option<*const Carrier> {
        let host = host::current();
        if host.is_null() {
            return None;
        }
        // SAFETY: a bound host is alive: its owner unbinds it first.
        let is_carrier = unsafe { &*host }.is_carrier();
        assert!(is_carrier, "this thread carries goroutines, not coroutines");
        Some(host.cast())
    }

    /// Sets which coroutine runs and returns which did.
    pub(super) fn replace_running(&self, running: *mut ()) -> *mut () {
        self.current.replace(running)
    }

    pub(super) fn running(&self) -> *mut () {
        self.current.get()
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // SAFETY: bound by `new` on this thread, whose stack and block run this.
        unsafe { host::unbind() };
    }
}
