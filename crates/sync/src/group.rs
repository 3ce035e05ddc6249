//! Goroutines that work for one result. Go's `golang.org/x/sync/errgroup`.

use crate::context::{self, Cancel, Context};
use crate::mutex::Mutex;
use crate::node::Patience;
use crate::raw::RawSemaphore;
use crate::wait_group::WaitGroup;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};

/// Goroutines of which the first that fails cancels the rest. Go's `errgroup.Group`.
///
/// Each gets a context that ends when one of them returns an error or panics, when
/// [`wait`](Group::wait) returns, or when the group's parent context does.
///
/// ```
/// use gosched_sync::{Group, context};
///
/// let group = Group::new(&context::background());
/// group.go(|ctx| Err(ctx.done().recv().map_or("cancelled", |()| "unreachable")));
/// group.go(|_| Err("no such page"));
/// assert_eq!(group.wait(), Err("no such page"));
/// ```
pub struct Group<E> {
    shared: Arc<Shared<E>>,
    ctx: Context,
}

struct Shared<E> {
    running: WaitGroup,
    cancel: Cancel,
    first: Mutex<Option<Failure<E>>>,
    limit: Option<RawSemaphore>,
}

/// How the first one failed.
enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

/// A running goroutine's place within the limit.
struct Place<E>(Arc<Shared<E>>);

impl<E> Drop for Place<E> {
    fn drop(&mut self) {
        if let Some(limit) = &self.0.limit {
            limit.release(1);
        }
    }
}

impl<E: Send + 'static> Group<E> {
    /// A group whose context comes from `parent`.
    pub fn new(parent: &Context) -> Group<E> {
        Group::with(parent, None)
    }

    /// At most `limit` goroutines at a time.
    ///
    /// # Panics
    /// If `limit` is 0: nothing could ever run.
    pub fn with_limit(parent: &Context, limit: usize) -> Group<E> {
        assert!(limit > 0, "Group::with_limit: nothing could ever run");
        Group::with(parent, Some(RawSemaphore::new(limit)))
    }

    fn with(parent: &Context, limit: Option<RawSemaphore>) -> Group<E> {
        let (ctx, cancel) = context::with_cancel(parent);
        let shared = Shared { running: WaitGroup::new(), cancel, first: Mutex::new(None), limit };
        Group { shared: Arc::new(shared), ctx }
    }

    /// Runs `f` in a goroutine; waits first while the group is at its limit.
    #[track_caller]
    pub fn go<F>(&self, f: F)
    where
        F: FnOnce(&Context) -> Result<(), E> + Send + 'static,
    {
        if let Some(limit) = &self.shared.limit {
            // An endless wait has no other end.
            let _done = limit.acquire(1, Patience::Endless);
        }
        self.start(f);
    }

    /// Runs `f` in a goroutine if the group is below its limit; says whether it does.
    #[track_caller]
    pub fn try_go<F>(&self, f: F) -> bool
    where
        F: FnOnce(&Context) -> Result<(), E> + Send + 'static,
    {
        let may = self.shared.limit.as_ref().is_none_or(|limit| limit.try_acquire(1));
        if may {
            self.start(f);
        }
        may
    }

    #[track_caller]
    fn start<F>(&self, f: F)
    where
        F: FnOnce(&Context) -> Result<(), E> + Send + 'static,
    {
        let (place, ctx) = (Place(self.shared.clone()), self.ctx.clone());
        self.shared.running.go(move || {
            let result = catch_unwind(AssertUnwindSafe(|| f(&ctx)));
            match result {
                Ok(Ok(())) => {}
                Ok(Err(error)) => place.0.fail(Failure::Error(error)),
                Err(payload) => place.0.fail(Failure::Panic(payload)),
            }
        });
    }

    /// The group's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// Waits until all have ended, then ends the group's context.
    ///
    /// # Errors
    /// The first error.
    ///
    /// # Panics
    /// With the payload of the first panic, if that came before any error. (Go's ends the process.)
    pub fn wait(self) -> Result<(), E> {
        self.shared.running.wait();
        self.shared.cancel.cancel();
        match self.shared.lock().take() {
            None => Ok(()),
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic(payload)) => resume_unwind(payload),
        }
    }
}

impl<E> Shared<E> {
    fn lock(&self) -> crate::mutex::MutexGuard<'_, Option<Failure<E>>> {
        // Nothing panics under it.
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: Failure<E>) {
        let mut first = self.lock();
        // One that comes late is dropped, outside the lock.
        let late = if first.is_none() { first.replace(failure) } else { Some(failure) };
        drop(first);
        drop(late);
        self.cancel.cancel_cause("another goroutine of the group has failed");
    }
}

impl<E> fmt::Debug for Group<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("running", &self.shared.running).finish_non_exhaustive()
    }
}
