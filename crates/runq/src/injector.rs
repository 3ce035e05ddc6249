//! The way in for threads that are no machines: a lock-free stack that is always taken whole.
//!
//! ```text
//!   top ──► G3 ─link─► G2 ─link─► G1 ─► null        take_all returns G1, G2, G3
//! ```
//!
//! Anyone can stop a plain thread at any time and for as long as they like, so it must never hold
//! a lock that a machine waits for. Here a thread that stops between its two steps has changed
//! nothing that others see.
//!
//! Steps of a pusher: P1 read `top`, P2 link the token to it, P3 compare-exchange `top` to the
//! token.
//! Steps of a taker: T1 swap `top` with null, T2 reverse the chain.
//!
//! Invariants
//! * I1. The tokens reachable from `top` are those pushed since the last swap, newest first, and
//!   end with null.
//! * I2. Links of tokens in the stack don't change. P2 writes the link of a token that isn't in
//!   yet; T2 writes those of tokens that are out.
//!
//! Why there is no ABA problem: P3 may succeed although `top` was taken and the same token was
//! pushed again since P1. That is harmless, since P2 depends on nothing but the word that P3
//! compares: whatever happened, at P3 the chain below `top` is the chain that `top` stands for.
//! Only a `pop` would depend on a link that it read before, and there is none.

use std::{cell::Cell, fmt, marker::PhantomData, ptr};

use crate::{
    list::{Batch, List},
    sync::{AtomicPtr, Ordering, const_unless_modelled},
    token::{Linked, token_of, word_of},
};

/// A lock-free list that any thread may push to and that is taken as a whole.
///
/// Go has no counterpart: there every thread that readies a goroutine is a machine.
///
/// # Examples
/// ```
/// # use std::ptr::NonNull;
/// # use gosched_runq::{Injector, Link, Linked, Token};
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
/// let injector = Injector::new();
/// (0..3).for_each(|id| injector.push(task(id)));
/// assert_eq!(injector.take_all().map(|t| t.0.id).collect::<Vec<_>>(), [0, 1, 2]);
/// assert!(injector.is_empty());
/// ```
pub struct Injector<T> {
    /// The newest token, or null. Written by: anyone. Read by: anyone.
    top: AtomicPtr<()>,
    /// Invariant in `T`: tokens come out as they went in, with the same lifetimes.
    tokens: PhantomData<Cell<T>>,
}

// SAFETY: whoever shares the injector can take tokens out of it on its own thread, hence `Send`.
unsafe impl<T: Send> Sync for Injector<T> {}
// SAFETY: an injector is a set of tokens.
unsafe impl<T: Send> Send for Injector<T> {}

impl<T> Injector<T> {
    const_unless_modelled! {
        /// An empty injector.
        pub fn new() -> Injector<T> {
            Injector { top: AtomicPtr::new(ptr::null_mut()), tokens: PhantomData }
        }
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint. Whoever must not miss a push has a fence before it looks, as the pusher
        // has before it looks whom to wake.
        self.top.load(Ordering::Relaxed).is_null()
    }
}

impl<T: Linked> Injector<T> {
    /// Puts `token` in, from any thread.
    pub fn push(&self, token: T) {
        let word = word_of(token);
        // Relaxed: only compared and linked to, not followed.
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            token.link().set(top);
            // ORDERING: pairs with `take_all` (edge `inject`); makes the link visible, and what was
            // written before the push. A failure only brings the new top.
            let (put, otherwise) = (Ordering::Release, Ordering::Relaxed);
            match self.top.compare_exchange_weak(top, word, put, otherwise) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes everything, the oldest first.
    pub fn take_all(&self) -> Batch<T> {
        if self.is_empty() {
            return Batch::new();
        }
        // ORDERING: pairs with `push` (edge `inject`); makes the links visible, and what was
        // written before each push: pushes are read-modify-writes of one word, so that the last
        // one carries on what the earlier ones released.
        let mut word = self.top.swap(ptr::null_mut(), Ordering::Acquire);
        let mut taken = List::new();
        // SAFETY: from `word_of` - the top and the links below it are set to nothing else (I1).
        while let Some(token) = unsafe { token_of::<T>(word) } {
            word = token.link().get();
            taken.push_front(token);
        }
        taken.into()
    }
}

impl<T> Default for Injector<T> {
    fn default() -> Injector<T> {
        Injector::new()
    }
}

impl<T> fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
