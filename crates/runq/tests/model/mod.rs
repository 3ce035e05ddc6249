//! What the models share: a token whose use loom can check, and the bounds of the search.

use std::{
    collections::BTreeSet,
    mem,
    ptr::NonNull,
    sync::{Arc, Mutex},
};

use gosched_runq::{Link, Linked, Token};
use loom::{cell::UnsafeCell, model::Builder};

/// Explores `run` with at most five forced switches, or what LOOM_MAX_PREEMPTIONS says, and
/// returns all that it returned.
///
/// Loom leaves out orders that it takes for equivalent, sometimes wrongly: it looks only at the
/// last access to an atomic, even if that was the same thread's. So each model says which outcomes
/// there have to be. What helps is to let those who only look run in the threads that start last.
pub(crate) fn explore<O: Ord + Send + 'static>(
    run: impl Fn() -> O + Send + Sync + 'static,
) -> BTreeSet<O> {
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = outcomes.clone();
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(5);
    builder.check(move || {
        let outcome = run();
        seen.lock().expect("never poisoned").insert(outcome);
    });
    mem::take(&mut *outcomes.lock().expect("never poisoned"))
}

/// A numbered node with a value that only the holder of its token may touch.
#[derive(Debug)]
struct Node {
    link: Link,
    id: usize,
    runs: UnsafeCell<usize>,
}

/// A token of a [`Node`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task(&'static Node);

// SAFETY: whoever got the token out of a queue has the node alone; loom checks just that.
unsafe impl Send for Task {}

// SAFETY: the pointer is that of a `&'static Node`, and comes back as one.
unsafe impl Token for Task {
    fn into_ptr(self) -> NonNull<()> {
        NonNull::from(self.0).cast()
    }

    unsafe fn from_ptr(ptr: NonNull<()>) -> Task {
        // SAFETY: by the trait's contract the pointer came from `into_ptr`.
        Task(unsafe { ptr.cast().as_ref() })
    }
}

// SAFETY: each node has a link of its own.
unsafe impl Linked for Task {
    fn link(&self) -> &Link {
        &self.0.link
    }
}

impl Task {
    /// Does what a processor does with a token it took: touch what the putter wrote. Loom fails
    /// if that was not made visible, or if somebody else does the same.
    pub(crate) fn run(self) -> usize {
        self.0.runs.with_mut(|runs| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *runs += 1 }
        });
        self.0.id
    }
}

/// A task with the number `id`, written by the calling thread.
///
/// Leaked, since the threads of a model borrow for ever; a run leaks some hundred bytes.
pub(crate) fn task(id: usize) -> Task {
    let node = Node { link: Link::new(), id, runs: UnsafeCell::new(0) };
    node.runs.with_mut(|runs| {
        // SAFETY: the node is not shared yet.
        unsafe { *runs = 1 }
    });
    Task(Box::leak(Box::new(node)))
}

/// Runs `tasks` and returns their numbers.
pub(crate) fn run_all(tasks: impl IntoIterator<Item = Task>) -> Vec<usize> {
    tasks.into_iter().map(Task::run).collect()
}

/// Asserts that `parts` hold the numbers from 0 up to `count`, each once.
pub(crate) fn assert_all_once<const N: usize>(count: usize, parts: [Vec<usize>; N]) {
    let mut ids = parts.concat();
    ids.sort_unstable();
    assert_eq!(ids, (0..count).collect::<Vec<_>>(), "lost or doubled");
}
