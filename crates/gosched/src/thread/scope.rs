//! Goroutines that borrow. [`std::thread::scope`].

use super::{Builder, JoinHandle, Thread};
use gosched_sched::{WaitReason, Waiter, block};
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// In which goroutines can be made that borrow from outside it.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    data: Arc<Data>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The scope's goroutines and who waits for them.
#[derive(Debug, Default)]
struct Data {
    /// How many have not ended, and one for the scope itself.
    running: AtomicUsize,
    /// The scope's own waiter, 0 before it waits.
    waiter: AtomicUsize,
    a_goroutine_panicked: AtomicBool,
}

impl Data {
    /// One less; the last wakes the scope.
    fn leave(&self) {
        // ORDERING: AcqRel: what each goroutine wrote is visible to the scope after the last.
        if self.running.fetch_sub(1, AcqRel) == 1 {
            // ORDERING: Acquire pairs with `wait`, whose decrement published the waiter.
            if let Some(word) = NonZeroUsize::new(self.waiter.load(Acquire)) {
                // SAFETY: the scope registered itself; the last to leave is one.
                unsafe { Waiter::from_word(word) }.wake();
            }
        }
    }

    /// Waits until all goroutines have ended.
    fn wait(&self) {
        block(WaitReason::Join, |waiter| {
            // ORDERING: Relaxed; the decrement below publishes it.
            self.waiter.store(waiter.into_word().get(), Relaxed);
            // ORDERING: AcqRel: pairs with `leave` on both sides.
            self.running.fetch_sub(1, AcqRel) != 1
        });
    }
}

/// Makes a scope: goroutines spawned in it may borrow what outlives the call, since it returns only
/// when all of them have ended. [`std::thread::scope`].
///
/// ```
/// let (mut a, b) = (vec![1, 2, 3], 10);
/// gosched::thread::scope(|s| {
///     s.spawn(|| a.push(4));
///     s.spawn(|| assert_eq!(b, 10));
/// });
/// assert_eq!(a, [1, 2, 3, 4]);
/// ```
///
/// Neither the scope nor its handles leave it, and what its goroutines borrow outlives it:
///
/// ```compile_fail
/// let handle = gosched::thread::scope(|s| s.spawn(|| 1));
/// ```
///
/// ```compile_fail,E0373
/// gosched::thread::scope(|s| {
///     let inner = 1;
///     s.spawn(|| inner + 1);
/// });
/// ```
///
/// ```compile_fail,E0277
/// let local = std::rc::Rc::new(1);
/// gosched::thread::scope(|s| drop(s.spawn(|| local.clone())));
/// ```
///
/// # Panics
/// If `f` panics, or a goroutine whose handle was not joined.
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let data = Arc::new(Data { running: AtomicUsize::new(1), ..Data::default() });
    let scope = Scope { data: data.clone(), scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    data.wait();
    match result {
        Err(payload) => resume_unwind(payload),
        // ORDERING: Relaxed; `wait` has synchronised with all of them.
        Ok(_) if data.a_goroutine_panicked.load(Relaxed) => {
            panic!("a scoped goroutine panicked")
        }
        Ok(value) => value,
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Runs `f` in a new goroutine of the scope.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match self.spawn_with(Builder::new(), f, Location::caller()) {
            Ok(handle) => handle,
            Err(error) => panic!("scope: {error}"),
        }
    }

    pub(super) fn spawn_with<F, T>(
        &'scope self,
        builder: Builder,
        f: F,
        site: &'static Location<'static>,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let data = self.data.clone();
        // ORDERING: Relaxed; the scope itself counts, so it can't be 0.
        data.running.fetch_add(1, Relaxed);
        let result = Arc::new(Packet { value: UnsafeCell::new(None), data: data.clone() });
        let packet = result.clone();
        let in_scope = InScope(data);
        let body = move || {
            let outcome = catch_unwind(AssertUnwindSafe(f));
            // SAFETY: the goroutine alone touches the value until it has ended.
            unsafe { *packet.value.get() = Some(outcome) };
            // The outcome may borrow as well: ours goes first, then the scope may end.
            drop(packet);
            drop(in_scope);
        };
        // The handle, the other owner of the outcome, can't leave the scope.
        // SAFETY: `scope` returns only after `in_scope` was dropped, the goroutine's last act, or
        // with the body if it never became a goroutine; so all that `f` borrows outlives its use.
        // All is Send by the bounds.
        let handle = unsafe { builder.spawn_unchecked_at(body, site) }?;
        Ok(ScopedJoinHandle { handle, result, scope: PhantomData })
    }
}

/// Counts for one goroutine of the scope.
struct InScope(Arc<Data>);

impl Drop for InScope {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A scoped goroutine's outcome, shared with its handle.
struct Packet<T> {
    /// Written by: the goroutine, before it ends. Read by: `join`, after its end.
    value: UnsafeCell<Option<super::Result<T>>>,
    data: Arc<Data>,
}

// SAFETY: the value is used by one side at a time, and the goroutine's end lies in between.
unsafe impl<T: Send> Sync for Packet<T> {}

impl<T> Drop for Packet<T> {
    fn drop(&mut self) {
        if matches!(self.value.get_mut(), Some(Err(_))) {
            // ORDERING: Relaxed; the scope reads it after it has waited for all.
            self.data.a_goroutine_panicked.store(true, Relaxed);
        }
    }
}

/// Owns the right to a scoped goroutine's result. [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<()>,
    result: Arc<Packet<T>>,
    scope: PhantomData<&'scope ()>,
}

type Payload = Box<dyn Any + Send + 'static>;

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the goroutine's end and returns what its function returned.
    ///
    /// # Errors
    /// The payload of its panic.
    pub fn join(self) -> Result<T, Payload> {
        let ScopedJoinHandle { handle, result, .. } = self;
        handle.join()?;
        // SAFETY: the goroutine has ended; this handle is the only other owner, and is used up.
        let outcome = unsafe { (*result.value.get()).take() };
        match outcome {
            Some(outcome) => outcome,
            None => unreachable!("a scoped goroutine that ended has an outcome"),
        }
    }

    /// The goroutine.
    #[must_use]
    pub fn thread(&self) -> Thread {
        self.handle.thread()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
