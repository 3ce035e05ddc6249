//! Channels in the shape of [`std::sync::mpsc`], on those of `gosched::channel`.
//!
//! The errors are std's own types.

use gosched_channel as channel;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::time::Duration;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// A channel without a bound. [`std::sync::mpsc::channel`].
///
/// ```
/// use gosched_sync::mpsc::channel;
///
/// let (sender, receiver) = channel();
/// std::thread::spawn(move || (1..=3).for_each(|n| sender.send(n).unwrap()));
/// assert_eq!(receiver.iter().sum::<i32>(), 6);
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = channel::unbounded();
    (Sender(sender), Receiver::new(receiver))
}

/// A channel with room for `bound` messages; with 0 a send waits for its receive.
/// [`std::sync::mpsc::sync_channel`].
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = channel::bounded(bound);
    (SyncSender(sender), Receiver::new(receiver))
}

/// The sending end of [`channel`](fn@channel). [`std::sync::mpsc::Sender`].
pub struct Sender<T>(channel::Sender<T>);

/// The sending end of [`sync_channel`]. [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(channel::Sender<T>);

/// The receiving end. [`std::sync::mpsc::Receiver`]; one only, so it is not `Sync`.
///
/// ```compile_fail,E0277
/// fn is_sync<T: Sync>() {}
/// is_sync::<gosched_sync::mpsc::Receiver<u32>>();
/// ```
pub struct Receiver<T> {
    channel: channel::Receiver<T>,
    not_sync: PhantomData<std::cell::Cell<()>>,
}

impl<T> Sender<T> {
    /// Sends; never waits.
    ///
    /// # Errors
    /// If the receiver is gone; gives the message back.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message).map_err(|error| SendError(error.into_inner()))
    }
}

impl<T> SyncSender<T> {
    /// Sends, and waits for room.
    ///
    /// # Errors
    /// If the receiver is gone; gives the message back.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.0.send(message).map_err(|error| SendError(error.into_inner()))
    }

    /// Sends if there is room.
    ///
    /// # Errors
    /// If there is none, or the receiver is gone; gives the message back.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(message).map_err(|error| match error {
            channel::TrySendError::Full(message) => TrySendError::Full(message),
            channel::TrySendError::Disconnected(message) => TrySendError::Disconnected(message),
        })
    }
}

impl<T> Receiver<T> {
    fn new(channel: channel::Receiver<T>) -> Receiver<T> {
        Receiver { channel, not_sync: PhantomData }
    }

    /// Receives, and waits for a message.
    ///
    /// # Errors
    /// If there is none and all senders are gone.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.channel.recv().map_err(|_| RecvError)
    }

    /// Receives if there is a message.
    ///
    /// # Errors
    /// If there is none, or will never be one.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.channel.try_recv().map_err(|error| match error {
            channel::TryRecvError::Empty => TryRecvError::Empty,
            channel::TryRecvError::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// As [`recv`](Receiver::recv), at most for `timeout`.
    ///
    /// # Errors
    /// If there is none in time, or will never be one.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.channel.recv_timeout(timeout).map_err(|error| match error {
            channel::RecvTimeoutError::Timeout => RecvTimeoutError::Timeout,
            channel::RecvTimeoutError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// Every message until all senders are gone; waits.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Every message that is there; doesn't wait.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

/// Of [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// Of [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// Every message of a receiver that is used up for it.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender(self.0.clone())
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> SyncSender<T> {
        SyncSender(self.0.clone())
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
