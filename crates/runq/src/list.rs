//! Intrusive lists: [`List`], a FIFO with a length, and [`Batch`], a chain on its way from one
//! queue to another.
//!
//! ```text
//! List   first ──► G ─link─► G ─link─► G ◄── last      len = 3
//! ```
//!
//! Invariants
//! * I1. `len` counts the tokens from `first` to `last`. With `len == 0` both are stale and unread.
//! * I2. Each token but `last` links to the one behind it. The link of `last` is never read, so
//!   that cutting and joining chains writes as little as possible.
//!
//! Neither owns what it holds: tokens are `Copy`. A batch that is dropped with tokens in it would
//! lose them for good, so that is an assertion.

use std::{fmt, marker::PhantomData, mem, ptr};

use crate::token::{Linked, token_of, word_of};
use gosched_base::{Stride, prefetch};

/// A first-in first-out list chained through the tokens themselves. Go's `gQueue`.
///
/// # Examples
/// ```
/// # use std::ptr::NonNull;
/// # use gosched_runq::{Link, Linked, List, Token};
/// # struct Node { link: Link, id: u32 }
/// # #[derive(Clone, Copy)]
/// # struct Task(&'static Node);
/// # // SAFETY: the pointer is that of a `&'static Node`, and comes back as one.
/// # unsafe impl Token for Task {
/// #     fn into_ptr(self) -> NonNull<()> { NonNull::from(self.0).cast() }
/// #     // SAFETY: by the trait's contract the pointer came from `into_ptr`.
/// #     unsafe fn from_ptr(ptr: NonNull<()>) -> Task { Task(unsafe { ptr.cast().as_ref() }) }
/// # }
/// # // SAFETY: each node has a link of its own.
/// # unsafe impl Linked for Task { fn link(&self) -> &Link { &self.0.link } }
/// # let task = |id| Task(Box::leak(Box::new(Node { link: Link::new(), id })));
/// let mut list = List::new();
/// list.push_back(task(1));
/// list.push_back(task(2));
/// list.push_front(task(0));
///
/// let batch = list.take(2);
/// assert_eq!(batch.map(|t: Task| t.0.id).collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(list.pop_front().unwrap().0.id, 2);
/// ```
pub struct List<T> {
    first: *mut (),
    last: *mut (),
    len: usize,
    tokens: PhantomData<T>,
}

// SAFETY: a list is a set of tokens; who holds the list holds them.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: `&List` gives nothing but the length.
unsafe impl<T> Sync for List<T> {}

impl<T> List<T> {
    /// An empty list.
    #[inline]
    pub const fn new() -> List<T> {
        List { first: ptr::null_mut(), last: ptr::null_mut(), len: 0, tokens: PhantomData }
    }

    /// How many tokens the list holds.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the list holds no token.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Linked> List<T> {
    /// Puts `token` at the end.
    #[inline]
    pub fn push_back(&mut self, token: T) {
        let word = word_of(token);
        self.join(word, word, 1);
    }

    /// Puts `token` before all others.
    #[inline]
    pub fn push_front(&mut self, token: T) {
        let word = word_of(token);
        if self.is_empty() {
            self.last = word;
        } else {
            token.link().set(self.first);
        }
        self.first = word;
        self.len += 1;
    }

    /// The first token, which stays.
    #[inline]
    pub fn first(&self) -> Option<T> {
        if self.is_empty() { None } else { Some(Self::token(self.first)) }
    }

    /// Takes the first token.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let token = Self::token(self.first);
        self.len -= 1;
        if self.len > 0 {
            self.first = token.link().get();
        }
        Some(token)
    }

    /// Puts all of `batch` at the end, in its order.
    #[inline]
    pub fn append(&mut self, batch: Batch<T>) {
        let chain = batch.into_list();
        if !chain.is_empty() {
            self.join(chain.first, chain.last, chain.len);
        }
    }

    /// Takes the first `max` tokens, or all if there are fewer.
    #[inline]
    pub fn take(&mut self, max: usize) -> Batch<T> {
        if max >= self.len {
            return Batch(mem::take(self));
        }
        if max == 0 {
            return Batch::new();
        }
        let last = Self::walk(self.first, max - 1);
        let taken = List { first: self.first, last: word_of(last), len: max, tokens: PhantomData };
        self.first = last.link().get();
        self.len -= max;
        Batch(taken)
    }

    /// Puts the chain of `len` tokens from `first` to `last` at the end.
    #[inline]
    fn join(&mut self, first: *mut (), last: *mut (), len: usize) {
        if self.is_empty() {
            self.first = first;
        } else {
            Self::token(self.last).link().set(first);
        }
        self.last = last;
        self.len += len;
    }

    /// The token `steps` behind the one that `word` stands for. All of them may be cold.
    #[inline]
    fn walk(word: *mut (), steps: usize) -> T {
        let mut ahead = Stride::new();
        (0..steps).fold(Self::token(word), |token, _| {
            let link = ptr::from_ref(token.link()).addr();
            if let Some(distance) = ahead.passes(link) {
                prefetch(link.wrapping_add(distance));
            }
            Self::token(token.link().get())
        })
    }

    /// The token that `word`, which is in the list, stands for.
    #[inline]
    fn token(word: *mut ()) -> T {
        // SAFETY: came from `word_of` - `first`, `last` and the links are set to nothing else
        // while `len` counts them (I1, I2).
        unsafe { token_of(word) }.expect("a chain is as long as its length says")
    }
}

impl<T> Default for List<T> {
    #[inline]
    fn default() -> List<T> {
        List::new()
    }
}

impl<T> fmt::Debug for List<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A chain of tokens on its way from one queue to another, first in first out.
///
/// Iterating takes tokens off its front; what was not taken stays in it. It has to end up empty:
/// by iterating, or by handing it to [`List::append`] or [`Global::append`](crate::Global::append).
///
/// # Panics
/// Dropping a batch that still has tokens panics, since they would never run.
#[must_use = "the tokens in a batch are in no queue"]
pub struct Batch<T>(List<T>);

impl<T> Batch<T> {
    /// A batch without tokens.
    #[inline]
    pub const fn new() -> Batch<T> {
        Batch(List::new())
    }

    /// How many tokens the batch holds.
    #[inline]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the batch holds no token.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tokens as a list that can grow.
    #[inline]
    pub fn into_list(mut self) -> List<T> {
        mem::take(&mut self.0)
    }
}

impl<T> From<List<T>> for Batch<T> {
    #[inline]
    fn from(list: List<T>) -> Batch<T> {
        Batch(list)
    }
}

impl<T: Linked> Iterator for Batch<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<T: Linked> ExactSizeIterator for Batch<T> {}

impl<T> Default for Batch<T> {
    #[inline]
    fn default() -> Batch<T> {
        Batch::new()
    }
}

impl<T> fmt::Debug for Batch<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Drop for Batch<T> {
    #[inline]
    fn drop(&mut self) {
        assert!(self.is_empty() || std::thread::panicking(), "a batch was dropped with tokens");
    }
}
