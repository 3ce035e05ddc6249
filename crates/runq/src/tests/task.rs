//! The token of the tests: a numbered node.

use std::{
    cell::UnsafeCell,
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Link, Linked, Token};

/// A node that can be queued.
#[derive(Debug)]
pub(super) struct Node {
    link: Link,
    pub(super) id: usize,
    /// Whether somebody holds the token, rather than a queue.
    held: AtomicBool,
    /// Touched only by who holds the token; a race here is a missing edge, which Miri reports.
    runs: UnsafeCell<usize>,
}

// SAFETY: `runs` is reached only through `Task::run`, whose callers hold the token.
unsafe impl Sync for Node {}

/// A token of a [`Node`] that outlives the queues of its test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a>(pub(super) &'a Node);

// SAFETY: the pointer is that of a `&Node`, which lives for `'a`, and comes back as one.
unsafe impl Token for Task<'_> {
    fn into_ptr(self) -> NonNull<()> {
        NonNull::from(self.0).cast()
    }

    unsafe fn from_ptr(ptr: NonNull<()>) -> Self {
        // SAFETY: by the trait's contract the pointer came from `into_ptr` of a token with the
        // same lifetime.
        Task(unsafe { ptr.cast().as_ref() })
    }
}

// SAFETY: each node has a link of its own.
unsafe impl Linked for Task<'_> {
    fn link(&self) -> &Link {
        &self.0.link
    }
}

impl Task<'_> {
    /// Does what a processor does with a token that it took from a queue.
    ///
    /// # Panics
    /// If somebody else holds the token too.
    pub(super) fn run(self) {
        // Relaxed: only the count of holders matters; visibility is what the queues are to bring.
        assert!(!self.0.held.swap(true, Ordering::Relaxed), "{} was doubled", self.0.id);
        let runs = self.0.runs.get();
        // SAFETY: this thread alone holds the token.
        unsafe { *runs += 1 };
        self.0.held.store(false, Ordering::Relaxed);
    }
}

/// Nodes numbered from 0.
pub(super) fn nodes(count: usize) -> Vec<Node> {
    let node =
        |id| Node { link: Link::new(), id, held: AtomicBool::new(false), runs: UnsafeCell::new(0) };
    (0..count).map(node).collect()
}

/// The numbers of `tasks`.
#[allow(single_use_lifetimes, reason = "anonymous lifetimes in impl Trait are unstable")]
pub(super) fn ids<'a>(tasks: impl IntoIterator<Item = Task<'a>>) -> Vec<usize> {
    tasks.into_iter().map(|task| task.0.id).collect()
}
