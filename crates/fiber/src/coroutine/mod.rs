//! The smallest thing that runs on a fiber: resumed by one thread, suspended by itself.
//!
//! No scheduler, no queue. Tests resume one from alternating threads to show that a fiber is a
//! thread as far as Rust and libc can tell; benches measure the bare switch with it.
//!
//! A coroutine that is dropped before its end never ends: unwinding it would run code that the
//! program did not call, and freeing its stack would take values away from those who still refer
//! to them (a scoped thread's, say). So its stack and block stay as they are for ever, as with
//! `mem::forget`. One that never started gives its fiber back.

mod carrier;
mod on_fiber;
mod on_thread;

pub use self::carrier::Carrier;

use self::on_fiber::OnFiber;
use self::on_thread::OnThread;
use crate::fiber::FiberError;
use crate::stack::Class;
use crate::tls::{self, Kind};
use std::any::Any;
use std::fmt;
use std::panic::resume_unwind;

/// A function that can be suspended in the middle and resumed from any thread.
///
/// Dropped before its end it leaks its stack, its thread-locals, and all that lives in them.
///
/// ```
/// use gosched_fiber::{Coroutine, suspend, tls};
/// tls::init(None, None);
/// let mut steps = Coroutine::new(|| {
///     suspend();
/// }).unwrap();
/// assert!(!steps.resume()); // suspended
/// assert!(steps.resume()); // ended
/// ```
pub struct Coroutine {
    body: Body,
    done: bool,
}

enum Body {
    Fiber(OnFiber),
    Thread(OnThread),
}

/// What stopped a coroutine.
enum Stop {
    Suspended,
    Ended,
    Panicked(Box<dyn Any + Send>),
}

impl Coroutine {
    /// A coroutine with a stack of the default class. It starts at its first resume.
    ///
    /// # Errors
    /// No memory for the stack or its block.
    pub fn new(f: impl FnOnce() + Send + 'static) -> Result<Coroutine, FiberError> {
        Coroutine::with_class(Class::DEFAULT, f)
    }

    /// As [`new`](Coroutine::new), on a stack of another class.
    ///
    /// # Errors
    /// No memory for the stack or its block.
    pub fn with_class(
        class: Class,
        f: impl FnOnce() + Send + 'static,
    ) -> Result<Coroutine, FiberError> {
        let body = match tls::kind() {
            Kind::Threads => Body::Thread(OnThread::new(class, f)?),
            _ => Body::Fiber(OnFiber::new(class, Box::new(f))?),
        };
        Ok(Coroutine { body, done: false })
    }

    /// Runs the function until it suspends (false) or ends (true).
    ///
    /// # Panics
    /// If the function panicked, with its payload; if it has ended before; on a thread that
    /// carries goroutines.
    pub fn resume(&mut self) -> bool {
        assert!(!self.done, "a coroutine that ended can't be resumed");
        let stop = match &mut self.body {
            Body::Fiber(body) => body.resume(),
            Body::Thread(body) => body.resume(),
        };
        self.done = !matches!(stop, Stop::Suspended);
        if let Stop::Panicked(payload) = stop {
            resume_unwind(payload);
        }
        self.done
    }
}

impl fmt::Debug for Coroutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutine").field("done", &self.done).finish_non_exhaustive()
    }
}

/// Suspends the coroutine that calls it.
///
/// # Panics
/// Outside a coroutine.
pub fn suspend() {
    match tls::kind() {
        Kind::Threads => on_thread::suspend(),
        _ => on_fiber::suspend(),
    }
}
