//! What operations return when they do not succeed. The types of crossbeam-channel 0.5.

use std::error::Error;
use std::fmt;

/// [`Sender::send`](crate::Sender::send) failed: the channel is closed. Gives the message back.
///
/// ```
/// # use gosched_channel::{unbounded, SendError};
/// let (s, r) = unbounded();
/// drop(r);
/// assert_eq!(s.send("message"), Err(SendError("message")));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// [`Sender::try_send`](crate::Sender::try_send) failed. Gives the message back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// No room; on a channel without a buffer: nobody waits to receive.
    Full(T),
    /// The channel is closed.
    Disconnected(T),
}

/// [`Sender::send_timeout`](crate::Sender::send_timeout) failed. Gives the message back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// No room came up in time.
    Timeout(T),
    /// The channel is closed.
    Disconnected(T),
}

/// [`Receiver::recv`](crate::Receiver::recv) failed: the channel is empty and closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// [`Receiver::try_recv`](crate::Receiver::try_recv) failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No message; on a channel without a buffer: nobody waits to send.
    Empty,
    /// The channel is empty and closed.
    Disconnected,
}

/// [`Receiver::recv_timeout`](crate::Receiver::recv_timeout) failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// No message came in time.
    Timeout,
    /// The channel is empty and closed.
    Disconnected,
}

/// [`Sender::send_ctx`](crate::Sender::send_ctx) failed. Gives the message back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendCtxError<T> {
    /// The context ended first.
    Cancelled(T),
    /// The channel is closed.
    Disconnected(T),
}

/// [`Receiver::recv_ctx`](crate::Receiver::recv_ctx) failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvCtxError {
    /// The context ended first.
    Cancelled,
    /// The channel is empty and closed.
    Disconnected,
}

/// [`Select::try_select`](crate::Select::try_select) found nothing ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrySelectError;

/// [`Select::select_timeout`](crate::Select::select_timeout) found nothing ready in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectTimeoutError;

/// [`Select::try_ready`](crate::Select::try_ready) found nothing ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryReadyError;

/// [`Select::ready_timeout`](crate::Select::ready_timeout) found nothing ready in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyTimeoutError;

impl<T> SendError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        }
    }

    /// Whether there was no room.
    pub fn is_full(&self) -> bool {
        matches!(self, TrySendError::Full(_))
    }

    /// Whether the channel is closed.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, TrySendError::Disconnected(_))
    }
}

impl<T> SendTimeoutError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(message) | SendTimeoutError::Disconnected(message) => message,
        }
    }

    /// Whether the time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendTimeoutError::Timeout(_))
    }

    /// Whether the channel is closed.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, SendTimeoutError::Disconnected(_))
    }
}

impl<T> SendCtxError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendCtxError::Cancelled(message) | SendCtxError::Disconnected(message) => message,
        }
    }
}

impl<T> fmt::Debug for SendCtxError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SendCtxError::Cancelled(_) => "Cancelled(..)",
            SendCtxError::Disconnected(_) => "Disconnected(..)",
        })
    }
}

impl<T> fmt::Display for SendCtxError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SendCtxError::Cancelled(_) => "cancelled while waiting on send operation",
            SendCtxError::Disconnected(_) => "sending on a disconnected channel",
        })
    }
}

impl<T: Send> Error for SendCtxError<T> {}

impl fmt::Display for RecvCtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RecvCtxError::Cancelled => "cancelled while waiting on receive operation",
            RecvCtxError::Disconnected => "receiving on an empty and disconnected channel",
        })
    }
}

impl Error for RecvCtxError {}

impl TryRecvError {
    /// Whether there was no message.
    pub fn is_empty(&self) -> bool {
        matches!(self, TryRecvError::Empty)
    }

    /// Whether the channel is empty and closed.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, TryRecvError::Disconnected)
    }
}

impl RecvTimeoutError {
    /// Whether the time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self, RecvTimeoutError::Timeout)
    }

    /// Whether the channel is empty and closed.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, RecvTimeoutError::Disconnected)
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> TrySendError<T> {
        TrySendError::Disconnected(error.0)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(error: SendError<T>) -> SendTimeoutError<T> {
        SendTimeoutError::Disconnected(error.0)
    }
}

impl From<RecvError> for TryRecvError {
    fn from(_: RecvError) -> TryRecvError {
        TryRecvError::Disconnected
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(_: RecvError) -> RecvTimeoutError {
        RecvTimeoutError::Disconnected
    }
}

// Messages need not be `Debug`.

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.is_full() { "Full(..)" } else { "Disconnected(..)" })
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SendTimeoutError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("sending on a disconnected channel")
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TrySendError::Full(_) => "sending on a full channel",
            TrySendError::Disconnected(_) => "sending on a disconnected channel",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SendTimeoutError::Timeout(_) => "timed out waiting on send operation",
            SendTimeoutError::Disconnected(_) => "sending on a disconnected channel",
        })
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("receiving on an empty and disconnected channel")
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TryRecvError::Empty => "receiving on an empty channel",
            TryRecvError::Disconnected => "receiving on an empty and disconnected channel",
        })
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RecvTimeoutError::Timeout => "timed out waiting on receive operation",
            RecvTimeoutError::Disconnected => "channel is empty and disconnected",
        })
    }
}

impl fmt::Display for TrySelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("all operations in select would block")
    }
}

impl fmt::Display for SelectTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("timed out waiting on select")
    }
}

impl fmt::Display for TryReadyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("all operations in select would block")
    }
}

impl fmt::Display for ReadyTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("timed out waiting on select")
    }
}

impl<T: Send> Error for SendError<T> {}
impl<T: Send> Error for TrySendError<T> {}
impl<T: Send> Error for SendTimeoutError<T> {}
impl Error for RecvError {}
impl Error for TryRecvError {}
impl Error for RecvTimeoutError {}
impl Error for TrySelectError {}
impl Error for SelectTimeoutError {}
impl Error for TryReadyError {}
impl Error for ReadyTimeoutError {}
