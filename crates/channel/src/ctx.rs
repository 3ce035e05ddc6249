//! Sending and receiving until a context ends.
//!
//! A select of the operation and of the channel that the context closes; the context comes first, so
//! that one which has ended already ends the operation before it begins.

use crate::error::{RecvCtxError, SendCtxError, TryRecvError};
use crate::select;
use crate::{Receiver, Sender};
use std::cell::Cell;

/// What ends operations: a context, which closes a channel when it ends.
pub trait Done {
    /// A channel without messages, closed at the end.
    fn done(&self) -> &Receiver<()>;
}

impl<T> Sender<T> {
    /// As [`send`](Sender::send), but gives up when `ctx` ends.
    ///
    /// # Errors
    /// Gives the message back if the context ended first, or the channel is closed.
    ///
    /// ```
    /// # use gosched_channel::{bounded, Done, Receiver, SendCtxError};
    /// struct Ending(Receiver<()>);
    /// impl Done for Ending {
    ///     fn done(&self) -> &Receiver<()> {
    ///         &self.0
    ///     }
    /// }
    /// let (end, done) = bounded(0);
    /// let ctx = Ending(done);
    /// let (s, _r) = bounded(1);
    /// assert_eq!(s.send_ctx(&ctx, 1), Ok(()));
    /// drop(end);
    /// assert_eq!(s.send_ctx(&ctx, 2), Err(SendCtxError::Cancelled(2)));
    /// ```
    pub fn send_ctx<C: Done + ?Sized>(&self, ctx: &C, message: T) -> Result<(), SendCtxError<T>> {
        let done = ctx.done();
        if done.try_recv() == Err(TryRecvError::Disconnected) {
            return Err(SendCtxError::Cancelled(message));
        }
        let message = Cell::new(Some(message));
        let take = || message.take().expect("one case is chosen, once");
        select! {
            recv(done) -> _ => Err(SendCtxError::Cancelled(take())),
            send(self, take()) -> sent => {
                sent.map_err(|error| SendCtxError::Disconnected(error.into_inner()))
            }
        }
    }
}

impl<T> Receiver<T> {
    /// As [`recv`](Receiver::recv), but gives up when `ctx` ends.
    ///
    /// # Errors
    /// If the context ended first, or the channel is empty and closed.
    pub fn recv_ctx<C: Done + ?Sized>(&self, ctx: &C) -> Result<T, RecvCtxError> {
        let done = ctx.done();
        if done.try_recv() == Err(TryRecvError::Disconnected) {
            return Err(RecvCtxError::Cancelled);
        }
        select! {
            recv(done) -> _ => Err(RecvCtxError::Cancelled),
            recv(self) -> message => message.map_err(|_| RecvCtxError::Disconnected),
        }
    }
}
