//! A function that runs once a context has ended. Go's `context.AfterFunc`.

use super::Context;
use super::scope::{Child, Place, Scope};
use crate::mutex::Mutex;
use gosched_sched::{SpawnOptions, spawn};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, PoisonError};

/// Runs `f` in a goroutine of its own once `ctx` has ended; at once if it has. Go's
/// `context.AfterFunc`.
///
/// Dropping the handle changes nothing.
///
/// ```
/// use gosched_sync::{context, mpsc};
///
/// let (ctx, cancel) = context::with_cancel(&context::background());
/// let (tell, told) = mpsc::channel();
/// let after = context::after_func(&ctx, move || tell.send(()).unwrap());
/// cancel.cancel();
/// told.recv().unwrap();
/// assert!(!after.stop());
/// ```
#[track_caller]
pub fn after_func<F: FnOnce() + Send + 'static>(ctx: &Context, f: F) -> AfterFunc {
    let function =
        Arc::new(Function { run: Mutex::new(Some(Box::new(f))), site: Location::caller() });
    let place = ctx.scope().and_then(|scope| {
        let entered = Scope::enter(scope, Child::Function(function.clone()));
        if entered.is_err() {
            function.start();
        }
        entered.ok()
    });
    AfterFunc { function, place }
}

/// The handle of [`after_func`].
pub struct AfterFunc {
    function: Arc<Function>,
    place: Option<Place>,
}

/// What will run; taken by who starts it or stops it.
pub(super) struct Function {
    run: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    site: &'static Location<'static>,
}

impl Function {
    fn take(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn start(&self) {
        let Some(run) = self.take() else { return };
        // SAFETY: all is Send and 'static, by the bounds of `after_func`.
        let handle = unsafe { spawn(run, SpawnOptions::default(), self.site) };
        if let Err(error) = handle {
            panic!("context::after_func: {error}");
        }
    }
}

impl AfterFunc {
    /// Keeps the function from running: true if this has, false if it was started or stopped
    /// before. It does not wait for a function that runs.
    pub fn stop(&self) -> bool {
        let stopped = self.function.take();
        if stopped.is_some()
            && let Some(place) = &self.place
        {
            place.leave();
        }
        stopped.is_some()
    }
}

impl fmt::Debug for AfterFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AfterFunc").finish_non_exhaustive()
    }
}
