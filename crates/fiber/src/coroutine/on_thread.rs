//! A coroutine on a kernel thread of its own, which runs while the coroutine is resumed.

use super::Stop;
use crate::fiber::FiberError;
use crate::stack::Class;
use crate::tls::Defect;
use gosched_base::Parker;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

pub(super) struct OnThread {
    baton: Arc<Baton>,
    thread: Option<JoinHandle<()>>,
    started: bool,
}

#[derive(Default)]
struct Baton {
    go: Parker,
    back: Parker,
    ended: AtomicBool,
    /// The coroutine was dropped before it started.
    abandoned: AtomicBool,
}

thread_local! {
    /// Null but in a coroutine's function.
    static BATON: Cell<*const Baton> = const { Cell::new(ptr::null()) };
}

impl OnThread {
    pub(super) fn new(
        class: Class,
        f: impl FnOnce() + Send + 'static,
    ) -> Result<OnThread, FiberError> {
        let baton = Arc::new(Baton::default());
        let its = baton.clone();
        let thread = Builder::new()
            .stack_size(class.usable_bytes())
            .spawn(move || run(&its, f))
            .map_err(|e| Defect::ThreadCreation(e.raw_os_error().unwrap_or(0)))
            .map_err(FiberError::Block)?;
        Ok(OnThread { baton, thread: Some(thread), started: false })
    }

    pub(super) fn resume(&mut self) -> Stop {
        self.started = true;
        self.baton.go.wake();
        self.baton.back.sleep();
        // ORDERING: Relaxed; the parker's edge publishes it.
        if !self.baton.ended.load(Relaxed) {
            return Stop::Suspended;
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(payload)) => Stop::Panicked(payload),
            _ => Stop::Ended,
        }
    }
}

impl Drop for OnThread {
    fn drop(&mut self) {
        if !self.started {
            // ORDERING: Relaxed; the parker's edge publishes it.
            self.baton.abandoned.store(true, Relaxed);
            self.baton.go.wake();
        }
    }
}

fn run(baton: &Baton, f: impl FnOnce()) {
    baton.go.sleep();
    // ORDERING: Relaxed; the parker's edge publishes it.
    if baton.abandoned.load(Relaxed) {
        return;
    }
    BATON.set(baton);
    let result = catch_unwind(AssertUnwindSafe(f));
    // Destructors of thread-locals run when the baton is gone: they can't suspend.
    BATON.set(ptr::null());
    // ORDERING: Relaxed; the parker's edge publishes it.
    baton.ended.store(true, Relaxed);
    baton.back.wake();
    if let Err(payload) = result {
        resume_unwind(payload);
    }
}

pub(super) fn suspend() {
    let baton = BATON.get();
    assert!(!baton.is_null(), "suspend: not in a coroutine");
    // SAFETY: this thread's own baton; `run` borrows it while it is set.
    let baton = unsafe { &*baton };
    baton.back.wake();
    baton.go.sleep();
}
