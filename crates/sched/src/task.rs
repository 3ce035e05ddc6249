//! What a goroutine runs, and how its result is handed over.
//!
//! Closure and result share one place, which the spawner has from `blocks` or the allocator: the
//! closure has moved to the goroutine's stack before the result exists. `JoinWord` says whose the
//! allocation is.

use crate::blocks::{self, Size, Surplus};
use crate::cancel::{self, Cancels};
use crate::goroutine::{GRef, GoroutineId};
use crate::machine::Inside;
use crate::reason::WaitReason;
use crate::wait::{self, Waiter};
use gosched_protocol::{Completed, JoinWord, Registered};
use std::alloc::{Layout, dealloc};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a join gives: the value, or the panic's payload.
type Outcome<T> = Result<T, Box<dyn Any + Send + 'static>>;

/// The part of a task that does not depend on its types.
#[repr(C)]
pub(crate) struct TaskHeader {
    vtable: &'static Vtable,
    pub(crate) join: JoinWord,
    pub(crate) name: Option<Arc<str>>,
    /// Whether the result was dropped already, because the handle was gone.
    result_dropped: Cell<bool>,
}

pub(crate) struct Vtable {
    pub(crate) run: unsafe fn(NonNull<TaskHeader>) -> Ended,
    pub(crate) drop_result: unsafe fn(NonNull<TaskHeader>),
    pub(crate) free: unsafe fn(NonNull<TaskHeader>),
    /// Moves the outcome out and frees the task.
    pub(crate) take: unsafe fn(NonNull<TaskHeader>, *mut ()),
    /// If its memory is a block, its size; see `blocks`.
    pub(crate) block: Option<Size>,
    /// What the function is called. For traces.
    pub(crate) name: fn() -> &'static str,
}

/// What became of a task that was to be freed inside the runtime.
pub(crate) enum FreedInside {
    Yes,
    /// It was, and something else is to be freed outside.
    Surplus(Surplus),
    /// It takes user code.
    No,
}

/// How a task's function ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Returned,
    Panicked,
}

#[repr(C)]
struct Task<F, T> {
    header: TaskHeader,
    body: UnsafeCell<Body<F, T>>,
}

union Body<F, T> {
    function: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<T>>,
}

impl<F: FnOnce() -> T, T> Task<F, T> {
    const LAYOUT: Layout = Layout::new::<Self>();
    const BLOCK: Option<Size> = Size::of(Self::LAYOUT);

    /// A place for a task. From a goroutine or a plain thread, in user context.
    #[inline]
    fn allocate() -> NonNull<u8> {
        blocks::allocate(Self::BLOCK.map_or(Self::LAYOUT, Size::layout))
    }

    /// A task that nobody else knows yet.
    ///
    /// # Safety
    /// * `place` is for a task of this type, and nobody uses it.
    /// * What `f` and its result borrow outlives the goroutine; `F` and `T` may cross threads.
    #[inline]
    unsafe fn write(place: NonNull<u8>, f: F, name: Option<Arc<str>>) -> NonNull<TaskHeader> {
        let task = Task::<F, T> {
            header: TaskHeader {
                vtable: &Vtable {
                    run: run::<F, T>,
                    drop_result: drop_result::<F, T>,
                    free: free::<F, T>,
                    take: take::<F, T>,
                    block: Self::BLOCK,
                    name: std::any::type_name::<F>,
                },
                join: JoinWord::new(),
                name,
                result_dropped: Cell::new(false),
            },
            body: UnsafeCell::new(Body { function: ManuallyDrop::new(f) }),
        };
        // SAFETY: by the caller.
        unsafe { place.cast().write(task) };
        place.cast()
    }

    /// # Safety
    /// * `task` is one of this type, its fields were moved out or dropped, and nobody uses it.
    #[inline]
    unsafe fn release(task: NonNull<TaskHeader>) {
        if let Some(size) = Self::BLOCK {
            // SAFETY: by the caller; such blocks are allocated for these tasks.
            unsafe { blocks::free(task.cast(), size) };
        } else {
            // SAFETY: by the caller; this layout is what others are allocated with.
            unsafe { dealloc(task.as_ptr().cast(), Self::LAYOUT) };
        }
    }
}

/// Makes a task on a plain thread.
///
/// # Safety
/// * What `f` and its result borrow outlives the goroutine; `F` and `T` may cross threads.
pub(crate) unsafe fn make_outside<F: FnOnce() -> T, T>(
    f: F,
    name: Option<Arc<str>>,
) -> NonNull<TaskHeader> {
    // SAFETY: a new place; the rest by the caller.
    unsafe { Task::write(Task::<F, T>::allocate(), f, name) }
}

/// Makes a task on a goroutine, which may leave the runtime and enter it again for its memory.
///
/// # Safety
/// * As for [`make_outside`].
#[inline]
pub(crate) unsafe fn make<F: FnOnce() -> T, T>(
    inside: Inside,
    f: F,
    name: Option<Arc<str>>,
) -> (Inside, NonNull<TaskHeader>) {
    let (inside, place) = match Task::<F, T>::BLOCK {
        Some(size) => blocks::take(inside, size),
        None => blocks::allocate_outside(inside, Task::<F, T>::LAYOUT),
    };
    // SAFETY: a new place, or a block that nobody has; the rest by the caller.
    (inside, unsafe { Task::write(place, f, name) })
}

/// # Safety
/// * `task` is a `Task<F, T>` that was not run; its goroutine calls this, once.
unsafe fn run<F: FnOnce() -> T, T>(task: NonNull<TaskHeader>) -> Ended {
    let task = task.cast::<Task<F, T>>().as_ptr();
    // SAFETY: by the caller; only the goroutine touches the body before `complete`.
    let body = unsafe { (*task).body.get() };
    // SAFETY: the goroutine's own place.
    let body = unsafe { &mut *body };
    // SAFETY: not run yet, so the body is the function.
    let function = unsafe { &mut body.function };
    // SAFETY: it is moved out once.
    let function = unsafe { ManuallyDrop::take(function) };
    let outcome = catch_unwind(AssertUnwindSafe(function));
    let ended = if outcome.is_ok() { Ended::Returned } else { Ended::Panicked };
    // The function was moved out; the place is free for the outcome.
    *body = Body { outcome: ManuallyDrop::new(outcome) };
    ended
}

/// # Safety
/// * `task` is a `Task<F, T>` that was run, and whose outcome was neither taken nor dropped.
unsafe fn drop_result<F, T>(task: NonNull<TaskHeader>) {
    let task = task.cast::<Task<F, T>>().as_ptr();
    // SAFETY: by the caller.
    let body = unsafe { (*task).body.get() };
    // SAFETY: the goroutine's own place.
    let body = unsafe { &mut *body };
    // SAFETY: by the caller the body is the outcome.
    let outcome = unsafe { &mut body.outcome };
    // SAFETY: neither taken nor dropped before.
    unsafe { ManuallyDrop::drop(outcome) };
}

/// # Safety
/// * `task` is a `Task<F, T>` whose body was moved out or dropped, and nobody uses it any more.
unsafe fn free<F: FnOnce() -> T, T>(task: NonNull<TaskHeader>) {
    // SAFETY: by the caller; unions don't drop their fields.
    unsafe { task.cast::<Task<F, T>>().drop_in_place() };
    // SAFETY: dropped just now.
    unsafe { Task::<F, T>::release(task) };
}

/// # Safety
/// * As for `free`, but the body is the outcome; `out` is a place for an `Outcome<T>`.
unsafe fn take<F: FnOnce() -> T, T>(task: NonNull<TaskHeader>, out: *mut ()) {
    // SAFETY: by the caller.
    let body = unsafe { (*task.cast::<Task<F, T>>().as_ptr()).body.get() };
    // SAFETY: by the caller the body is the outcome; it is moved out once.
    let outcome = unsafe { body.cast::<Outcome<T>>().read() };
    // SAFETY: by the caller.
    unsafe { out.cast::<Outcome<T>>().write(outcome) };
    // SAFETY: the task is the caller's, and a union does not drop what was moved out of it.
    unsafe { free::<F, T>(task) };
}

impl TaskHeader {
    /// Of a task that nobody joins and that leaves nothing.
    pub(crate) fn without_result(vtable: &'static Vtable) -> TaskHeader {
        let (join, result_dropped) = (JoinWord::detached(), Cell::new(true));
        TaskHeader { vtable, join, name: None, result_dropped }
    }

    /// Frees the task inside the runtime, if that takes no user context.
    ///
    /// # Safety
    /// * As for [`free`](TaskHeader::free); the machine of `inside` holds its processor.
    #[inline]
    pub(crate) unsafe fn free_inside(task: NonNull<TaskHeader>, inside: &Inside) -> FreedInside {
        // SAFETY: by the caller.
        let header = unsafe { task.as_ref() };
        let Some(size) = header.vtable.block else { return FreedInside::No };
        if header.name.is_some() || !header.result_dropped.get() {
            return FreedInside::No;
        }
        // SAFETY: by the caller.
        let blocks = &mut unsafe { inside.processor().core() }.blocks;
        // SAFETY: a block by its vtable; nothing in it has to be dropped, and nobody uses it.
        match unsafe { blocks.give(task.cast(), size) } {
            None => FreedInside::Yes,
            Some(surplus) => FreedInside::Surplus(surplus),
        }
    }

    /// Tells what the function is called.
    pub(crate) fn function_name(&self) -> fn() -> &'static str {
        self.vtable.name
    }

    /// Makes a task without a result fit for another goroutine. For who has completed it.
    pub(crate) fn renew(&self) {
        self.join.renew();
    }

    /// Runs the function and keeps its outcome. User code.
    ///
    /// # Safety
    /// * `task` was made by [`make`] or [`make_outside`]; its goroutine calls this, once.
    #[inline]
    pub(crate) unsafe fn run(task: NonNull<TaskHeader>) -> Ended {
        // SAFETY: by the caller.
        let run = unsafe { task.as_ref() }.vtable.run;
        // SAFETY: by the caller.
        unsafe { run(task) }
    }

    /// Whether the outcome of a task that was run is still there. Its owner asks.
    #[inline]
    pub(crate) fn has_result(&self) -> bool {
        !self.result_dropped.get()
    }

    /// Drops the outcome now if nobody will ask for it. User code.
    ///
    /// # Safety
    /// * `task` was run; its goroutine calls this before [`complete`](TaskHeader::complete).
    #[inline]
    pub(crate) unsafe fn drop_if_detached(task: NonNull<TaskHeader>) {
        // SAFETY: by the caller.
        let header = unsafe { task.as_ref() };
        if header.join.is_detached() && !header.result_dropped.replace(true) {
            // A panic in the result's drop is nobody's to catch; std aborts as well.
            let guard =
                AbortOnUnwind("a goroutine's detached result panicked while it was dropped");
            // SAFETY: run, and not dropped before by the flag.
            unsafe { (header.vtable.drop_result)(task) };
            std::mem::forget(guard);
        }
    }

    /// Hands the outcome over. `Detached`: the caller frees the task, in user context.
    ///
    /// # Safety
    /// * As for `drop_if_detached`; the task is not the goroutine's afterwards unless `Detached`.
    #[inline]
    pub(crate) unsafe fn complete(task: NonNull<TaskHeader>) -> Completed {
        // SAFETY: by the caller.
        unsafe { task.as_ref() }.join.complete()
    }

    /// Frees the task, its outcome included if it is still there. User code.
    ///
    /// # Safety
    /// * The caller owns the task by `JoinWord`, and it was run.
    #[inline]
    pub(crate) unsafe fn free(task: NonNull<TaskHeader>) {
        // SAFETY: by the caller.
        let header = unsafe { task.as_ref() };
        let vtable = header.vtable;
        if !header.result_dropped.get() {
            // SAFETY: run, and not dropped before by the flag.
            unsafe { (vtable.drop_result)(task) };
        }
        // SAFETY: by the caller.
        unsafe { (vtable.free)(task) };
    }
}

/// Aborts with its message if it is dropped by unwinding.
pub(crate) struct AbortOnUnwind(pub(crate) &'static str);

impl Drop for AbortOnUnwind {
    #[inline]
    fn drop(&mut self) {
        gosched_base::rt_abort!("{}", self.0);
    }
}

/// A goroutine, as others name it. std's `Thread`.
#[derive(Clone)]
pub struct Thread {
    target: Target,
    name: Option<Arc<str>>,
}

#[derive(Clone)]
enum Target {
    Goroutine { g: GRef, id: GoroutineId },
    Plain { thread: std::thread::Thread, permit: Arc<crate::wait::PlainPermit> },
}

impl Thread {
    #[inline]
    pub(crate) fn goroutine(g: GRef, id: GoroutineId, name: Option<Arc<str>>) -> Thread {
        Thread { target: Target::Goroutine { g, id }, name }
    }

    /// The caller: a goroutine or a plain thread. std's `thread::current`.
    #[must_use]
    #[inline]
    pub fn current() -> Thread {
        match crate::current::current() {
            Some(g) => {
                let name = g.task.get().and_then(|task| {
                    // SAFETY: the running goroutine's own task, which it has not completed.
                    unsafe { task.as_ref() }.name.clone()
                });
                Thread::goroutine(g, g.id(), name)
            }
            None => {
                let (thread, permit) = (std::thread::current(), wait::plain_permit());
                Thread { target: Target::Plain { thread, permit }, name: None }
            }
        }
    }

    /// The goroutine's number; `None` for a plain thread.
    #[must_use]
    #[inline]
    pub fn goroutine_id(&self) -> Option<GoroutineId> {
        match self.target {
            Target::Goroutine { id, .. } => Some(id),
            Target::Plain { .. } => None,
        }
    }

    /// The name given to its builder.
    #[must_use]
    #[inline]
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            Target::Goroutine { .. } => self.name.as_deref(),
            Target::Plain { thread, .. } => thread.name(),
        }
    }

    /// Leaves the token that [`park`](crate::park()) waits for.
    ///
    /// On a goroutine that has ended it does nothing, but for a spurious token to the goroutine
    /// that may use its descriptor by now; `park` may return spuriously, as std's.
    #[inline]
    pub fn unpark(&self) {
        match &self.target {
            Target::Goroutine { g, id } => {
                if g.id() == *id && g.permit.unpark() {
                    Waiter::of_goroutine(*g).wake();
                }
            }
            Target::Plain { permit, .. } => permit.unpark(),
        }
    }
}

impl fmt::Debug for Thread {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.goroutine_id())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Owns the right to a goroutine's result. std's `JoinHandle`.
///
/// Dropping it detaches the goroutine, which then drops its result itself.
pub struct JoinHandle<T> {
    task: NonNull<TaskHeader>,
    g: GRef,
    id: GoroutineId,
    result: PhantomData<T>,
}

// SAFETY: the handle gives access to a `T` that was made on another thread, and to nothing else.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: `&JoinHandle` gives no access to the result.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    #[inline]
    pub(crate) fn new(task: NonNull<TaskHeader>, g: GRef, id: GoroutineId) -> JoinHandle<T> {
        JoinHandle { task, g, id, result: PhantomData }
    }

    #[inline]
    fn header(&self) -> &TaskHeader {
        // SAFETY: the task lives until the handle gives it up.
        unsafe { self.task.as_ref() }
    }

    /// Waits until the goroutine has ended, its thread-locals' destructors included, and returns
    /// what its function returned.
    ///
    /// # Errors
    /// The payload of its panic.
    #[inline]
    pub fn join(self) -> Outcome<T> {
        self.wait();
        let this = ManuallyDrop::new(self);
        let mut outcome = MaybeUninit::<Outcome<T>>::uninit();
        let vtable = this.header().vtable;
        // SAFETY: done, so the outcome is there and the task is the handle's; its type is `T`'s.
        unsafe { (vtable.take)(this.task, outcome.as_mut_ptr().cast()) };
        // SAFETY: `take` has written it.
        unsafe { outcome.assume_init() }
    }

    /// As [`join`](JoinHandle::join), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// The payload of its panic; or the handle, if the context was cancelled first.
    pub fn join_ctx<C: Cancels + ?Sized>(self, ctx: &C) -> Result<T, JoinCtxError<T>> {
        let Some(cancellation) = ctx.cancellation() else {
            return self.join().map_err(JoinCtxError::Panicked);
        };
        if cancellation.is_cancelled() {
            return Err(JoinCtxError::Cancelled(self));
        }
        let word = &self.header().join;
        if !word.is_done() {
            // The one that waits, for who takes it back.
            let waiting = AtomicUsize::new(0);
            let register = |waiter: Waiter| {
                // ORDERING: Relaxed; the cancellation's lock comes between this and the call of
                // `take_back`.
                waiting.store(waiter.into_word().get(), Relaxed);
                word.register(waiter.into_word()) == Registered::Waiting
            };
            let take_back = || {
                // ORDERING: Relaxed; as above.
                NonZeroUsize::new(waiting.load(Relaxed)).is_some_and(|w| word.withdraw(w))
            };
            cancel::block_unless(WaitReason::Join, cancellation, register, take_back);
        }
        if !self.is_finished() {
            return Err(JoinCtxError::Cancelled(self));
        }
        self.join().map_err(JoinCtxError::Panicked)
    }

    /// Waits for the goroutine's end without taking its result.
    #[inline]
    pub(crate) fn wait(&self) {
        if self.header().join.is_done() {
            return;
        }
        let header = self.header();
        wait::block(WaitReason::Join, |waiter: Waiter| {
            header.join.register(waiter.into_word()) == Registered::Waiting
        });
    }

    /// Whether the goroutine's function has returned and its result is there.
    #[must_use]
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.header().join.is_done()
    }

    /// The goroutine.
    #[must_use]
    #[inline]
    pub fn thread(&self) -> Thread {
        Thread::goroutine(self.g, self.id, self.header().name.clone())
    }
}

/// [`JoinHandle::join_ctx`] has no value.
pub enum JoinCtxError<T> {
    /// The goroutine panicked: its payload.
    Panicked(Box<dyn Any + Send + 'static>),
    /// The context was cancelled first; the goroutine goes on.
    Cancelled(JoinHandle<T>),
}

impl<T> fmt::Debug for JoinCtxError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinCtxError::Panicked(_) => f.write_str("Panicked(..)"),
            JoinCtxError::Cancelled(handle) => f.debug_tuple("Cancelled").field(handle).finish(),
        }
    }
}

impl<T> fmt::Display for JoinCtxError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinCtxError::Panicked(_) => "the goroutine panicked",
            JoinCtxError::Cancelled(_) => "the context was cancelled before the goroutine ended",
        })
    }
}

impl<T> std::error::Error for JoinCtxError<T> {}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if self.header().join.detach() {
            // SAFETY: done, so the task is the handle's.
            unsafe { TaskHeader::free(self.task) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("goroutine", &self.id).finish_non_exhaustive()
    }
}
