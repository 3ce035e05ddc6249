//! A socket whose calls end with a context.

use gosched_sched::{Cancellation, Cancelled};
use std::fmt;
use std::io;

/// A socket whose calls give up when a context is cancelled: what `with_context` of every socket
/// returns.
///
/// A call begins by looking at the context: one that is cancelled already reads and writes nothing,
/// whatever is ready. A call that waits fails as soon as it is cancelled, with an error that
/// [`is_cancelled`] knows. Time-outs and deadlines count as well.
///
/// Go has no counterpart: there a goroutine waits for `ctx.Done()` and sets a deadline.
///
/// ```
/// use gosched_net::{is_cancelled, unix::UnixStream};
/// use gosched_sched::Cancellation;
/// use std::io::{Read, Write};
///
/// static STOP: Cancellation = Cancellation::new(); // or a `Context`
/// let (a, mut b) = UnixStream::pair().unwrap();
/// b.write_all(b"hello").unwrap();
/// let reader = std::thread::spawn(move || {
///     let mut text = Vec::new();
///     let error = a.with_context(&STOP).read_to_end(&mut text).unwrap_err();
///     (text, is_cancelled(&error))
/// });
/// STOP.cancel(); // before the call, within it, or while it waits
/// assert!(reader.join().unwrap().1);
/// ```
pub struct WithContext<'a, S: ?Sized, C: ?Sized> {
    pub(crate) socket: &'a S,
    pub(crate) ctx: &'a C,
}

impl<S: ?Sized, C: ?Sized> Copy for WithContext<'_, S, C> {}

impl<S: ?Sized, C: ?Sized> Clone for WithContext<'_, S, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: fmt::Debug + ?Sized, C: ?Sized> fmt::Debug for WithContext<'_, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithContext").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Whether a call of [`WithContext`], or [`Pollable::call_ctx`](crate::Pollable::call_ctx), has
/// failed because its context was cancelled.
///
/// The error's kind is `Other`: `Interrupted` would be tried again by `read_exact` and its like.
#[must_use]
pub fn is_cancelled(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Cancelled>())
}

/// # Errors
/// If it is cancelled.
#[inline]
pub(crate) fn check(cancellation: Option<&Cancellation>) -> io::Result<()> {
    match cancellation {
        Some(cancellation) if cancellation.is_cancelled() => Err(io::Error::other(Cancelled)),
        _ => Ok(()),
    }
}

/// Methods of a socket `with_context` that are its own, but for the context.
macro_rules! calls_with_context {
    ($ours:ident: $(
        $(#[$doc:meta])*
        $direction:ident $name:ident($($arg:ident: $type:ty),*) -> $out:ty = $f:expr;
    )*) => {
        impl<C: ::gosched_sched::Cancels + ?Sized> $crate::WithContext<'_, $ours, C> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// As of the socket's own method, and if the context is cancelled.
                pub fn $name(&self, $($arg: $type),*) -> ::std::io::Result<$out> {
                    self.socket.io.call_ctx(self.ctx, $crate::Direction::$direction, $f)
                }
            )*
        }
    };
}
pub(crate) use calls_with_context;
