//! Padding against false sharing.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines.
///
/// 128 bytes: x86-64's adjacent-line prefetcher fetches lines in pairs, and big aarch64 cores have
/// lines of that size. (crossbeam-utils chose the same for the same reason.)
///
/// ```
/// let counters = [gosched_base::CachePadded::new(0_u64); 2];
/// assert_eq!(std::mem::size_of_val(&counters), 256);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Pads `value`.
    pub const fn new(value: T) -> CachePadded<T> {
        CachePadded(value)
    }

    /// The value, without the padding.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for CachePadded<T> {
    fn from(value: T) -> CachePadded<T> {
        CachePadded(value)
    }
}
