//! Code that must not be stopped by signal.
//!
//! A goroutine that is stopped while it holds a lock that everybody needs stops everybody. For
//! libc's locks its code is left alone ([`preempt`](crate::preempt)), but libc calls others under
//! them: callbacks, constructors, handlers of `fork`. And an allocator that is linked into the
//! executable has no addresses of its own.

use crate::current::{current, current_undeclared};
use crate::goroutine::GRef;
use crate::machine::Inside;
use std::marker::PhantomData;

/// Forbids stopping the calling goroutine by signal while it exists; nests.
///
/// For code that runs under a lock that everybody needs, in a callback for instance. A request that
/// comes meanwhile is served when the last one is dropped. The goroutine may wait meanwhile, as it
/// may with any lock held; others run then. On a plain thread, which is never stopped, it does
/// nothing.
///
/// Go has no counterpart that programs can call.
///
/// ```
/// let no_preempt = gosched_sched::NoPreempt::new();
/// // ... a few instructions under a lock of everybody's ...
/// drop(no_preempt);
/// ```
#[derive(Debug)]
#[must_use = "ends when it is dropped"]
pub struct NoPreempt {
    g: Option<GRef>,
    not_send: PhantomData<*const ()>,
}

impl NoPreempt {
    /// From here on.
    #[inline]
    pub fn new() -> NoPreempt {
        let g = current();
        if let Some(g) = g {
            g.forbid_preemption();
        }
        NoPreempt { g, not_send: PhantomData }
    }
}

impl Default for NoPreempt {
    fn default() -> NoPreempt {
        NoPreempt::new()
    }
}

impl Drop for NoPreempt {
    #[inline]
    fn drop(&mut self) {
        if self.g.is_some_and(|g| g.allow_preemption()) {
            serve();
        }
    }
}

/// Looks at what was asked for meanwhile; a declared call has given everything up already. Not in
/// a user's signal handler: there SIGURG leaves no note, and code with a note that is interrupted
/// by one has a depth of its own still.
#[cold]
fn serve() {
    if let Some(inside) = current_undeclared().and_then(|_| Inside::enter()) {
        inside.leave();
    }
}
