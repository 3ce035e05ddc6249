//! The receiving end.

use crate::chan::Chan;
use crate::clock::{Clock, wait_for_nobody};
use crate::core::Patience;
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::iter::{IntoIter, Iter, TryIter};
use crate::rt::WaitReason;
use crate::select::Token;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The receiving side of a channel.
///
/// Clones receive from the same channel, each message once. When the last one is dropped the
/// channel closes and drops the messages in it.
///
/// ```
/// # use gosched_channel::unbounded;
/// let (s, r) = unbounded();
/// std::thread::spawn(move || s.send("hello").unwrap());
/// assert_eq!(r.recv(), Ok("hello"));
/// assert!(r.recv().is_err());
/// ```
pub struct Receiver<T> {
    pub(crate) flavor: Flavor<T>,
}

pub(crate) enum Flavor<T> {
    Chan(Arc<Chan<T>>),
    /// With the message made from a time.
    Clock(Arc<Clock>, fn(Instant) -> T),
    Never,
}

impl<T> Receiver<T> {
    pub(crate) const fn new(flavor: Flavor<T>) -> Receiver<T> {
        Receiver { flavor }
    }

    #[inline]
    fn receive(&self, patience: Patience) -> Result<T, RecvTimeoutError> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.recv(patience),
            Flavor::Clock(clock, message) => {
                clock.wait(patience).map(message).ok_or(RecvTimeoutError::Timeout)
            }
            Flavor::Never => {
                wait_for_nobody(WaitReason::ChanReceiveNil, patience);
                Err(RecvTimeoutError::Timeout)
            }
        }
    }

    /// Receives what a select was told to receive.
    pub(crate) fn complete(&self, token: Token) -> Result<T, RecvError> {
        match (&self.flavor, token) {
            (Flavor::Chan(chan), token) => chan.complete_recv(token),
            (Flavor::Clock(_, message), Token::Instant(time)) => Ok(message(time)),
            (Flavor::Clock(..) | Flavor::Never, _) => Err(RecvError),
        }
    }

    /// Receives without waiting. On a channel without a buffer it succeeds if somebody waits to
    /// send.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, TryRecvError};
    /// let (s, r) = unbounded();
    /// assert_eq!(r.try_recv(), Err(TryRecvError::Empty));
    /// s.send(5).unwrap();
    /// drop(s);
    /// assert_eq!(r.try_recv(), Ok(5));
    /// assert_eq!(r.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    ///
    /// # Errors
    /// If it would have to wait, or the channel is empty and closed.
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.receive(Patience::None).map_err(|error| match error {
            RecvTimeoutError::Timeout => TryRecvError::Empty,
            RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// Receives, waiting for a message. Go's `<-ch`.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, RecvError};
    /// let (s, r) = unbounded();
    /// s.send(5).unwrap();
    /// drop(s);
    /// assert_eq!(r.recv(), Ok(5));
    /// assert_eq!(r.recv(), Err(RecvError));
    /// ```
    ///
    /// # Errors
    /// If the channel is empty and closed, also while it waits.
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.receive(Patience::Endless).map_err(|_| RecvError)
    }

    /// As [`recv`](Receiver::recv), waiting at most for `timeout`.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, RecvTimeoutError};
    /// # use std::time::Duration;
    /// let (_s, r) = unbounded::<u8>();
    /// assert_eq!(r.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    /// ```
    ///
    /// # Errors
    /// If the time is over, or the channel is empty and closed.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.receive(Patience::timeout(timeout))
    }

    /// As [`recv`](Receiver::recv), waiting at most until `deadline`.
    ///
    /// ```
    /// # use gosched_channel::unbounded;
    /// # use std::time::{Duration, Instant};
    /// let (_s, r) = unbounded::<u8>();
    /// assert!(r.recv_deadline(Instant::now() + Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    /// If the time is over, or the channel is empty and closed.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.receive(Patience::Until(deadline))
    }

    /// Closes the channel; see [`Sender::close`](crate::Sender::close). Channels of times, and those
    /// that are never ready, can't be closed.
    ///
    /// ```
    /// let (s, r) = gosched_channel::bounded(1);
    /// s.send(1).unwrap();
    /// assert!(r.close());
    /// assert!(s.send(2).is_err());
    /// assert_eq!(r.iter().collect::<Vec<_>>(), [1]);
    /// ```
    pub fn close(&self) -> bool {
        match &self.flavor {
            Flavor::Chan(chan) => chan.core().close(),
            Flavor::Clock(..) | Flavor::Never => false,
        }
    }

    /// Whether there is no message. Always so without a buffer.
    ///
    /// ```
    /// let (s, r) = gosched_channel::unbounded();
    /// assert!(r.is_empty());
    /// s.send(0).unwrap();
    /// assert!(!r.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room. Always so without a buffer.
    ///
    /// ```
    /// let (s, r) = gosched_channel::bounded(1);
    /// assert!(!r.is_full());
    /// s.send(0).unwrap();
    /// assert!(r.is_full());
    /// ```
    pub fn is_full(&self) -> bool {
        match &self.flavor {
            Flavor::Chan(chan) => chan.is_full(),
            Flavor::Clock(clock, _) => clock.is_due(),
            Flavor::Never => true,
        }
    }

    /// The number of messages. Go's `len(ch)`.
    ///
    /// ```
    /// let (s, r) = gosched_channel::unbounded();
    /// s.send(0).unwrap();
    /// assert_eq!(r.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        match &self.flavor {
            Flavor::Chan(chan) => chan.len(),
            Flavor::Clock(clock, _) => usize::from(clock.is_due()),
            Flavor::Never => 0,
        }
    }

    /// How many messages fit; `None` without a bound. Go's `cap(ch)`.
    ///
    /// ```
    /// let (_s, r) = gosched_channel::unbounded::<u8>();
    /// assert_eq!(r.capacity(), None);
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        match &self.flavor {
            Flavor::Chan(chan) => chan.capacity(),
            Flavor::Clock(..) => Some(1),
            Flavor::Never => Some(0),
        }
    }

    /// Receives until the channel is empty and closed. Go's `for v := range ch`.
    ///
    /// ```
    /// let (s, r) = gosched_channel::unbounded();
    /// std::thread::spawn(move || (1..4).for_each(|n| s.send(n).unwrap()));
    /// assert_eq!(r.iter().sum::<i32>(), 6);
    /// ```
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// Receives what there is without waiting.
    ///
    /// ```
    /// let (s, r) = gosched_channel::unbounded();
    /// s.send(1).unwrap();
    /// s.send(2).unwrap();
    /// assert_eq!(r.try_iter().count(), 2);
    /// ```
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }

    /// Whether both receive from the same channel.
    ///
    /// ```
    /// let (_s, r) = gosched_channel::unbounded::<u8>();
    /// assert!(r.same_channel(&r.clone()));
    /// assert!(!r.same_channel(&gosched_channel::never()));
    /// ```
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        match (&self.flavor, &other.flavor) {
            (Flavor::Chan(a), Flavor::Chan(b)) => Arc::ptr_eq(a, b),
            (Flavor::Clock(a, _), Flavor::Clock(b, _)) => Arc::ptr_eq(a, b),
            (Flavor::Never, Flavor::Never) => true,
            _ => false,
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver::new(match &self.flavor {
            Flavor::Chan(chan) => {
                chan.add_receiver();
                Flavor::Chan(Arc::clone(chan))
            }
            Flavor::Clock(clock, message) => Flavor::Clock(Arc::clone(clock), *message),
            Flavor::Never => Flavor::Never,
        })
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Flavor::Chan(chan) = &self.flavor {
            chan.remove_receiver();
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Receiver { .. }")
    }
}

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
        IntoIter { receiver: self }
    }
}

impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}
