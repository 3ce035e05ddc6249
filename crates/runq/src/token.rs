//! What the queues hold: pointer-sized names of runnable things.
//!
//! A token is `Copy` because a queue keeps it as a bare word; that it is in one place at a time is
//! the callers' rule (I1 of the crate). A token that can be in a list lends the list a word of its
//! object, the [`Link`], so that lists of any length need no memory of their own.

use std::ptr::{self, NonNull};

use crate::sync::{AtomicPtr, Ordering, const_unless_modelled};

/// A pointer-sized, non-null name of something that can be queued.
///
/// Go's counterpart is `guintptr`, a `*g` the garbage collector doesn't see.
///
/// # Safety
/// * `into_ptr` and `from_ptr` are inverse to each other and have no other effect.
/// * `from_ptr` is sound for every pointer that `into_ptr` returned, on any thread if the type is
///   `Send`, any number of times, for as long as a token is in a queue.
///
/// # Examples
/// ```
/// use std::ptr::NonNull;
///
/// #[derive(Clone, Copy)]
/// struct Task(&'static u32);
///
/// // SAFETY: the pointer is that of a `&'static u32`, and comes back as one.
/// unsafe impl gosched_runq::Token for Task {
///     fn into_ptr(self) -> NonNull<()> {
///         NonNull::from(self.0).cast()
///     }
///     unsafe fn from_ptr(ptr: NonNull<()>) -> Task {
///         // SAFETY: by the trait's contract `ptr` came from `into_ptr`.
///         Task(unsafe { ptr.cast().as_ref() })
///     }
/// }
///
/// let ring = gosched_runq::Ring::new();
/// // SAFETY: this is the only owner.
/// let mut owner = unsafe { ring.owner() };
/// assert!(owner.push_next(Task(&7)).is_none());
/// assert_eq!(*owner.pop_next().unwrap().0, 7);
/// ```
pub unsafe trait Token: Copy {
    /// The token as a bare pointer.
    fn into_ptr(self) -> NonNull<()>;

    /// The token that `ptr` stands for.
    ///
    /// # Safety
    /// * `ptr` came from `into_ptr` of a token of this type.
    unsafe fn from_ptr(ptr: NonNull<()>) -> Self;
}

/// A token whose object lends a word to the list the token is in.
///
/// Go's counterpart is `g.schedlink`.
///
/// # Safety
/// * `link` returns the same [`Link`] for every copy of a token, and different ones for different
///   tokens.
pub unsafe trait Linked: Token {
    /// The word in the token's object that names the next token of the list.
    fn link(&self) -> &Link;
}

/// The word through which a token is chained to the next one of its list.
///
/// Written by: whoever puts the token into a list or takes its predecessor out. Read by: whoever
/// holds the list. Guarded by: the list; the word is free for any use while the token is in none.
#[derive(Debug)]
pub struct Link(AtomicPtr<()>);

impl Link {
    const_unless_modelled! {
        /// A link that names nothing.
        #[inline]
        pub fn new() -> Link {
            Link(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// Names `next` as the token that follows.
    #[inline]
    pub(crate) fn set(&self, next: *mut ()) {
        // Relaxed: only the holder of the list touches the word; lists are handed over by a lock,
        // by `&mut`, or by the edge `inject` of the injector.
        self.0.store(next, Ordering::Relaxed);
    }

    /// The token that follows; null if none was named.
    #[inline]
    pub(crate) fn get(&self) -> *mut () {
        // Relaxed: as in `set`.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Link {
    #[inline]
    fn default() -> Link {
        Link::new()
    }
}

/// The word that stands for `token` in a slot.
pub(crate) fn word_of<T: Token>(token: T) -> *mut () {
    token.into_ptr().as_ptr()
}

/// The token that `word` stands for; `None` if the word is null.
///
/// # Safety
/// * `word` is null or came from [`word_of`] with the same `T`.
pub(crate) unsafe fn token_of<T: Token>(word: *mut ()) -> Option<T> {
    // SAFETY: came from `into_ptr` - `word` is not null here, so the caller vouches for it.
    NonNull::new(word).map(|ptr| unsafe { T::from_ptr(ptr) })
}
