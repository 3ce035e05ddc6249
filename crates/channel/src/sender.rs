//! The sending end.

use crate::chan::Chan;
use crate::core::Patience;
use crate::error::{SendError, SendTimeoutError, TrySendError};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The sending side of a channel.
///
/// Clones send into the same channel. When the last one is dropped the channel closes: receivers
/// get what is left in it, then an error.
///
/// ```
/// # use gosched_channel::unbounded;
/// let (s1, r) = unbounded();
/// let s2 = s1.clone();
/// std::thread::spawn(move || s1.send(1).unwrap()).join().unwrap();
/// s2.send(2).unwrap();
/// drop(s2);
/// assert_eq!(r.iter().collect::<Vec<_>>(), [1, 2]);
/// ```
pub struct Sender<T> {
    chan: Arc<Chan<T>>,
}

impl<T> Sender<T> {
    pub(crate) fn new(chan: Arc<Chan<T>>) -> Sender<T> {
        Sender { chan }
    }

    pub(crate) fn chan(&self) -> &Chan<T> {
        &self.chan
    }

    /// Sends without waiting. On a channel without a buffer it succeeds if somebody waits to
    /// receive.
    ///
    /// ```
    /// # use gosched_channel::{bounded, TrySendError};
    /// let (s, r) = bounded(1);
    /// assert_eq!(s.try_send(1), Ok(()));
    /// assert_eq!(s.try_send(2), Err(TrySendError::Full(2)));
    /// drop(r);
    /// assert_eq!(s.try_send(3), Err(TrySendError::Disconnected(3)));
    /// ```
    ///
    /// # Errors
    /// If it would have to wait, or the channel is closed; the message is in the error.
    #[inline]
    pub fn try_send(&self, msg: T) -> Result<(), TrySendError<T>> {
        self.chan.send(msg, Patience::None).map_err(|error| match error {
            SendTimeoutError::Timeout(msg) => TrySendError::Full(msg),
            SendTimeoutError::Disconnected(msg) => TrySendError::Disconnected(msg),
        })
    }

    /// Sends, waiting for room; on a channel without a buffer, for somebody who receives.
    ///
    /// Go's `ch <- v`, except that a closed channel is an error and not a panic.
    ///
    /// ```
    /// # use gosched_channel::{bounded, SendError};
    /// let (s, r) = bounded(1);
    /// assert_eq!(s.send(1), Ok(()));
    /// drop(r);
    /// assert_eq!(s.send(2), Err(SendError(2)));
    /// ```
    ///
    /// # Errors
    /// If the channel is closed, also while it waits; the message is in the error.
    #[inline]
    pub fn send(&self, msg: T) -> Result<(), SendError<T>> {
        self.chan.send(msg, Patience::Endless).map_err(|error| SendError(error.into_inner()))
    }

    /// As [`send`](Sender::send), waiting at most for `timeout`.
    ///
    /// ```
    /// # use gosched_channel::{bounded, SendTimeoutError};
    /// # use std::time::Duration;
    /// let (s, _r) = bounded(0);
    /// let late = s.send_timeout(1, Duration::from_millis(1));
    /// assert_eq!(late, Err(SendTimeoutError::Timeout(1)));
    /// ```
    ///
    /// # Errors
    /// If the time is over or the channel is closed; the message is in the error.
    pub fn send_timeout(&self, msg: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.chan.send(msg, Patience::timeout(timeout))
    }

    /// As [`send`](Sender::send), waiting at most until `deadline`.
    ///
    /// ```
    /// # use gosched_channel::bounded;
    /// # use std::time::{Duration, Instant};
    /// let (s, _r) = bounded(0);
    /// assert!(s.send_deadline(1, Instant::now() + Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    /// If the time is over or the channel is closed; the message is in the error.
    pub fn send_deadline(&self, msg: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.chan.send(msg, Patience::Until(deadline))
    }

    /// Closes the channel: sending fails from now on, receivers get what is left, then an error.
    ///
    /// Go's `close(ch)`, except that closing twice is no panic; and unlike in Go any end may do it.
    /// Not in crossbeam-channel, where a channel closes when the ends of one side are gone.
    ///
    /// Returns whether it was this call that closed it.
    ///
    /// ```
    /// # use gosched_channel::unbounded;
    /// let (s, r) = unbounded();
    /// s.send(1).unwrap();
    /// assert!(s.close());
    /// assert!(s.send(2).is_err());
    /// assert_eq!(r.recv(), Ok(1));
    /// assert!(r.recv().is_err());
    /// ```
    pub fn close(&self) -> bool {
        self.chan.core().close()
    }

    /// Whether there is no message. Always so without a buffer.
    ///
    /// ```
    /// let (s, _r) = gosched_channel::unbounded();
    /// assert!(s.is_empty());
    /// s.send(0).unwrap();
    /// assert!(!s.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room. Always so without a buffer.
    ///
    /// ```
    /// let (s, _r) = gosched_channel::bounded(1);
    /// assert!(!s.is_full());
    /// s.send(0).unwrap();
    /// assert!(s.is_full());
    /// ```
    pub fn is_full(&self) -> bool {
        self.chan.is_full()
    }

    /// The number of messages. Go's `len(ch)`.
    ///
    /// ```
    /// let (s, _r) = gosched_channel::unbounded();
    /// s.send(0).unwrap();
    /// assert_eq!(s.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// How many messages fit; `None` without a bound. Go's `cap(ch)`.
    ///
    /// ```
    /// let (s, _r) = gosched_channel::bounded::<u8>(5);
    /// assert_eq!(s.capacity(), Some(5));
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        self.chan.capacity()
    }

    /// Whether both send into the same channel.
    ///
    /// ```
    /// let (s, _r) = gosched_channel::unbounded::<u8>();
    /// let (other, _r) = gosched_channel::unbounded();
    /// assert!(s.same_channel(&s.clone()));
    /// assert!(!s.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.chan.add_sender();
        Sender { chan: Arc::clone(&self.chan) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.chan.remove_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Sender { .. }")
    }
}

impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
