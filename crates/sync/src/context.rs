//! Cancellation, deadlines and values that go along with a call. Go's `context`.
//!
//! | Go | here |
//! | --- | --- |
//! | `Background`, and the one for code to come | [`background`] |
//! | `WithCancel`, `WithCancelCause` | [`with_cancel`], with [`Cancel::cancel_cause`] |
//! | `WithDeadline`, `WithTimeout` | [`with_deadline`], [`with_timeout`] |
//! | `WithDeadlineCause`, `WithTimeoutCause` | [`with_deadline_cause`], [`with_timeout_cause`] |
//! | `WithValue`, `Value` | [`with_value`], [`Context::value`]; a value's key is its type |
//! | `WithoutCancel`, `AfterFunc`, `Cause` | [`without_cancel`], [`after_func`], [`Context::cause`] |
//!
//! A context is handed down explicitly, as the first argument. It ends waits: those of functions
//! with `_ctx` in their names, and of any `select!` that receives from [`Context::done`]. A context
//! that is cancelled already ends such a wait before it begins, whatever is ready.
//!
//! ```
//! use gosched_sync::context::{self, Context, ContextError};
//! use std::time::Duration;
//!
//! fn fetch(ctx: &Context) -> Option<ContextError> {
//!     ctx.done().recv().unwrap_err(); // what it would do takes too long
//!     ctx.err()
//! }
//! let (ctx, _cancel) = context::with_timeout(&context::background(), Duration::from_millis(5));
//! assert_eq!(fetch(&ctx), Some(ContextError::DeadlineExceeded));
//! ```

mod after;
mod scope;

pub use after::{AfterFunc, after_func};

use crate::once_lock::OnceLock;
use gosched_channel::{Done, Receiver, never};
use gosched_sched::{Cancellation, Cancels};
use scope::{Ended, Scope};
use std::any::{Any, TypeId};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a context was cancelled, in the words of who cancelled it.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// What a call and those it makes have in common: whether it should end, and values.
///
/// Clones are the same context.
#[derive(Clone)]
pub struct Context {
    /// `None`: the background.
    node: Option<Arc<Node>>,
}

/// One context that was derived.
struct Node {
    parent: Context,
    /// What cancels it: its own, or the nearest above.
    scope: Option<Arc<Scope>>,
    deadline: Option<Instant>,
    value: Option<(TypeId, Box<dyn Any + Send + Sync>)>,
}

/// How a context has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextError {
    /// It, or one above it, was cancelled.
    Canceled,
    /// Its deadline, or that of one above it, has passed.
    DeadlineExceeded,
}

/// The right to cancel a context. Dropping it cancels the context.
///
/// Go's `CancelFunc` and `CancelCauseFunc`. The first cancellation counts; further ones do nothing.
#[must_use = "cancels the context at once when it is dropped"]
pub struct Cancel {
    scope: Arc<Scope>,
}

/// The context that all others come from: never cancelled, without deadline and values. Go's
/// `context.Background`.
#[must_use]
pub const fn background() -> Context {
    Context { node: None }
}

/// A context that ends when it is told to, or when `parent` does. Go's `context.WithCancel`.
///
/// ```
/// use gosched_sync::context::{self, ContextError};
///
/// let (parent, cancel) = context::with_cancel(&context::background());
/// let (child, _cancel_child) = context::with_cancel(&parent);
/// assert_eq!(child.err(), None);
/// cancel.cancel_cause("out of coffee");
/// assert_eq!(child.err(), Some(ContextError::Canceled));
/// assert_eq!(child.cause().unwrap().to_string(), "out of coffee");
/// ```
pub fn with_cancel(parent: &Context) -> (Context, Cancel) {
    derive_scope(parent, parent.deadline())
}

/// A context that ends at `deadline` at the latest. Go's `context.WithDeadline`.
pub fn with_deadline(parent: &Context, deadline: Instant) -> (Context, Cancel) {
    with_deadline_and(parent, deadline, None)
}

/// As [`with_deadline`], and `cause` is the cause when the deadline passes. Go's
/// `context.WithDeadlineCause`.
pub fn with_deadline_cause<E>(parent: &Context, deadline: Instant, cause: E) -> (Context, Cancel)
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    with_deadline_and(parent, deadline, Some(Arc::from(cause.into())))
}

/// A context that ends after `timeout` at the latest. Go's `context.WithTimeout`.
///
/// One beyond the clock's range never passes.
pub fn with_timeout(parent: &Context, timeout: Duration) -> (Context, Cancel) {
    match Instant::now().checked_add(timeout) {
        Some(deadline) => with_deadline(parent, deadline),
        None => with_cancel(parent),
    }
}

/// As [`with_timeout`], and `cause` is the cause when the time is over. Go's
/// `context.WithTimeoutCause`.
pub fn with_timeout_cause<E>(parent: &Context, timeout: Duration, cause: E) -> (Context, Cancel)
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    match Instant::now().checked_add(timeout) {
        Some(deadline) => with_deadline_cause(parent, deadline, cause),
        None => with_cancel(parent),
    }
}

/// A context with one more value, which hides one of the same type above. Go's
/// `context.WithValue`, whose keys are types of a package for the same reason.
///
/// ```
/// use gosched_sync::context;
///
/// struct User(&'static str);
/// let ctx = context::with_value(&context::background(), User("gopher"));
/// assert_eq!(ctx.value::<User>().unwrap().0, "gopher");
/// assert!(ctx.value::<u32>().is_none());
/// ```
#[must_use]
pub fn with_value<T: Any + Send + Sync>(parent: &Context, value: T) -> Context {
    let value: Box<dyn Any + Send + Sync> = Box::new(value);
    Context::of(Node {
        parent: parent.clone(),
        scope: parent.scope().cloned(),
        deadline: parent.deadline(),
        value: Some((TypeId::of::<T>(), value)),
    })
}

/// A context with the values of `parent` that doesn't end with it. Go's `context.WithoutCancel`.
#[must_use]
pub fn without_cancel(parent: &Context) -> Context {
    Context::of(Node { parent: parent.clone(), scope: None, deadline: None, value: None })
}

fn derive_scope(parent: &Context, deadline: Option<Instant>) -> (Context, Cancel) {
    let scope = Scope::below(parent.scope());
    let node = Node { parent: parent.clone(), scope: Some(scope.clone()), deadline, value: None };
    (Context::of(node), Cancel { scope })
}

fn with_deadline_and(
    parent: &Context,
    deadline: Instant,
    cause: Option<Cause>,
) -> (Context, Cancel) {
    if parent.deadline().is_some_and(|earlier| earlier <= deadline) {
        return with_cancel(parent);
    }
    let (ctx, cancel) = derive_scope(parent, Some(deadline));
    let ended = Ended { error: ContextError::DeadlineExceeded, cause };
    cancel.scope.end_at(deadline, ended);
    (ctx, cancel)
}

impl Context {
    fn of(node: Node) -> Context {
        Context { node: Some(Arc::new(node)) }
    }

    fn scope(&self) -> Option<&Arc<Scope>> {
        self.node.as_ref()?.scope.as_ref()
    }

    /// A channel without messages, which is closed when the context ends. For `select!`.
    pub fn done(&self) -> &Receiver<()> {
        static NEVER: OnceLock<Receiver<()>> = OnceLock::new();
        match self.scope() {
            Some(scope) => scope.done(),
            None => NEVER.get_or_init(never),
        }
    }

    /// How the context has ended; `None` until then. Once it is there [`done`](Context::done) is
    /// closed, and the other way round.
    #[must_use]
    pub fn err(&self) -> Option<ContextError> {
        Some(self.scope()?.ended()?.error)
    }

    /// Why the context has ended: what [`Cancel::cancel_cause`] was told, or else the error.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        let ended = self.scope()?.ended()?;
        Some(ended.cause.clone().unwrap_or_else(|| Arc::new(ended.error)))
    }

    /// When the context ends at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.node.as_ref()?.deadline
    }

    /// The nearest value of this type.
    #[must_use]
    pub fn value<T: Any + Send + Sync>(&self) -> Option<&T> {
        let mut ctx = self;
        while let Some(node) = &ctx.node {
            if let Some((of, value)) = &node.value
                && *of == TypeId::of::<T>()
            {
                return value.downcast_ref();
            }
            ctx = &node.parent;
        }
        None
    }

    /// Waits for `d`; `sleep_ctx` says as well that it was cancelled, this says how. Go's `select` of
    /// `time.After` and `Done`.
    ///
    /// # Errors
    /// How the context has ended, if it did first.
    pub fn sleep(&self, d: Duration) -> Result<(), ContextError> {
        if self.err().is_none() && !d.is_zero() {
            // It holds no messages: either the time is over, or it is closed.
            let _ended = self.done().recv_timeout(d);
        }
        self.err().map_or(Ok(()), Err)
    }
}

impl Cancels for Context {
    fn cancellation(&self) -> Option<&Cancellation> {
        self.scope().map(|scope| scope.cancellation())
    }
}

impl Done for Context {
    fn done(&self) -> &Receiver<()> {
        Context::done(self)
    }
}

impl Default for Context {
    fn default() -> Context {
        background()
    }
}

impl Cancel {
    /// Ends the context and all below it; those who wait go on.
    pub fn cancel(&self) {
        self.scope.end(Ended { error: ContextError::Canceled, cause: None });
    }

    /// As [`cancel`](Cancel::cancel), and says why.
    pub fn cancel_cause<E: Into<Box<dyn Error + Send + Sync>>>(&self, cause: E) {
        let cause = Some(Arc::from(cause.into()));
        self.scope.end(Ended { error: ContextError::Canceled, cause });
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Drop for Node {
    /// One after the other: a long chain would not fit on a stack.
    fn drop(&mut self) {
        let mut next = self.parent.node.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.node.take();
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node.is_none() {
            return f.write_str("Context(background)");
        }
        let mut debug = f.debug_struct("Context");
        debug.field("err", &self.err()).field("deadline", &self.deadline());
        debug.finish_non_exhaustive()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").finish_non_exhaustive()
    }
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContextError::Canceled => "context canceled",
            ContextError::DeadlineExceeded => "context deadline exceeded",
        })
    }
}

impl Error for ContextError {}
