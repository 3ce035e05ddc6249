//! Receiving in loops.

use crate::receiver::Receiver;
use std::fmt;
use std::iter::FusedIterator;

/// Messages until the channel is empty and closed. See [`Receiver::iter`].
pub struct Iter<'a, T> {
    pub(crate) receiver: &'a Receiver<T>,
}

/// The messages that are there. See [`Receiver::try_iter`].
pub struct TryIter<'a, T> {
    pub(crate) receiver: &'a Receiver<T>,
}

/// Messages until the channel is empty and closed, with the receiver.
///
/// ```
/// let (s, r) = gosched_channel::unbounded();
/// s.send(1).unwrap();
/// drop(s);
/// assert_eq!(r.into_iter().collect::<Vec<_>>(), [1]);
/// ```
pub struct IntoIter<T> {
    pub(crate) receiver: Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Iter { .. }")
    }
}

impl<T> fmt::Debug for TryIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("TryIter { .. }")
    }
}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("IntoIter { .. }")
    }
}
