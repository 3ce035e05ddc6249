//! Alarms: a function that runs in a goroutine of its own when its time has come.
//!
//! An alarm is one allocation, made when it is made: its place in the heap, its state
//! ([`AlarmWord`]), its function, and the task of the goroutine that runs it. Firing takes a
//! descriptor, which needs no allocator, and makes it runnable; so whoever holds a heap's lock may
//! fire, inside the runtime.
//!
//! Plain threads take no lock of the scheduler's. They change the state, which decides at once, and
//! leave the heap to a goroutine.
//!
//! References, counted in one word: the handle, the heap while the alarm stands there, each firing,
//! and a goroutine that will settle it. The function is dropped with the last of them that may call
//! it; a firing gives it up before its goroutine's thread-locals end, and the memory after that.
//!
//! A function runs once at a time. Firings that come meanwhile are counted, and each starts when the
//! one before it has ended.

use super::Timers;
use super::heap::{Entry, Heap, Hook, Kind};
use crate::goroutine::GRef;
use crate::machine::Inside;
use crate::plant::Place;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::spawn::{SpawnOptions, spawn};
use crate::task::{AbortOnUnwind, Ended, TaskHeader, Vtable};
use crate::{current, idle, names, park, plant, start, transition};
use gosched_base::{LockGuard, rt_abort};
use gosched_protocol::{AlarmWord, Check, Heaps, LockedHeap, Settled};
use gosched_runq::List;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::mem::{ManuallyDrop, offset_of};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, Location, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::time::Duration;

/// What does not depend on the function's type.
#[repr(C)]
struct Header {
    /// First: a goroutine's task is this address.
    task: TaskHeader,
    hook: Hook,
    word: AlarmWord,
    references: AtomicUsize,
    /// Whether a goroutine will settle it that has not begun to. Written by: plain threads, it.
    is_handed_over: AtomicBool,
    /// The next of those that start together. Written by: who begins a firing.
    next: Cell<Option<AlarmRef>>,
    drop_function: unsafe fn(AlarmRef),
    free: unsafe fn(AlarmRef),
    site: &'static Location<'static>,
    /// The goroutine that made it; 0 for a plain thread.
    parent: u64,
}

#[repr(C)]
struct Alarm<F> {
    header: Header,
    /// Called by: the goroutine of the firing.
    function: UnsafeCell<ManuallyDrop<F>>,
}

/// A reference of each kind: to the function, and to the memory.
const REFERENCE: usize = FUNCTION + MEMORY;
const FUNCTION: usize = 1 << 32;
const MEMORY: usize = 1;

#[derive(Clone, Copy, Debug)]
struct AlarmRef(NonNull<Header>);

impl AlarmRef {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: whoever has an `AlarmRef` has one of its references, or the lock of the heap that
        // has one.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn add_reference(self) {
        // ORDERING: Relaxed; the caller's reference keeps it.
        self.header().references.fetch_add(REFERENCE, Relaxed);
    }

    /// Gives up a reference that others outlive.
    #[inline]
    fn subtract_reference(self) {
        // ORDERING: AcqRel as in `release_function`, for whoever comes last.
        let before = self.header().references.fetch_sub(REFERENCE, AcqRel);
        if before < 2 * REFERENCE {
            rt_abort!("an alarm's last reference was dropped inside the runtime");
        }
    }

    /// Gives up a reference to the function, and drops it if that was the last. User code.
    ///
    /// # Safety
    /// * The caller has a reference to the function that it does not use any more.
    #[inline]
    unsafe fn release_function(self) {
        // ORDERING: AcqRel: what others did with the function comes before its drop.
        let before = self.header().references.fetch_sub(FUNCTION, AcqRel);
        if before / FUNCTION == 1 {
            // SAFETY: nobody is left who could call it.
            unsafe { (self.header().drop_function)(self) };
        }
    }

    /// Gives up a reference to the memory, and frees it if that was the last. Not inside the
    /// runtime.
    ///
    /// # Safety
    /// * The caller has a reference to the memory that it does not use any more.
    #[inline]
    unsafe fn release_memory(self) {
        // ORDERING: AcqRel: what others did with it comes before it is freed.
        if self.header().references.fetch_sub(MEMORY, AcqRel) == MEMORY {
            // SAFETY: nobody is left, and the function went with the last who could call it.
            unsafe { (self.header().free)(self) };
        }
    }

    /// Gives up a reference. User code.
    ///
    /// # Safety
    /// * The caller has a reference that it does not use any more.
    #[inline]
    unsafe fn release(self) {
        // ORDERING: Acquire: what others did comes before the drop. Nobody is left to change it.
        if self.header().references.load(Acquire) == REFERENCE {
            // SAFETY: nobody else is left.
            unsafe { (self.header().drop_function)(self) };
            // SAFETY: as above.
            return unsafe { (self.header().free)(self) };
        }
        // SAFETY: by the caller.
        unsafe { self.release_function() };
        // SAFETY: by the caller.
        unsafe { self.release_memory() };
    }

    /// The alarm around a hook.
    ///
    /// # Safety
    /// * `hook` is an alarm's.
    unsafe fn of_hook(hook: *const Hook) -> AlarmRef {
        let header = hook.wrapping_byte_sub(offset_of!(Header, hook)).cast_mut().cast();
        // SAFETY: by the caller; no object is at address 0.
        AlarmRef(unsafe { NonNull::new_unchecked(header) })
    }

    fn hook(self) -> *const Hook {
        &raw const self.header().hook
    }

    /// Has the heap agree with the state for the first time, before anyone else knows it.
    #[inline]
    fn settle_first(self) {
        let Some(inside) = Inside::enter() else { return self.settle_from_outside() };
        // The heap's; `LockedTimers` adds none. ORDERING: Relaxed; published by the heap's lock.
        self.header().references.store(2 * REFERENCE, Relaxed);
        let earliest = Cell::new(u64::MAX);
        let heaps = ForAlarm { alarm: self, inside: &inside, is_new: true, earliest: &earliest };
        self.header().word.settle_first(&heaps);
        if earliest.get() != u64::MAX {
            idle::poll_no_later_than(earliest.get());
        }
        inside.leave();
    }

    /// Makes the heap agree with the state, after each change of it.
    #[inline]
    fn settle(self) {
        match Inside::enter() {
            Some(inside) => {
                self.settle_inside(&inside);
                inside.leave();
            }
            None => self.settle_from_outside(),
        }
    }

    #[inline]
    fn settle_inside(self, inside: &Inside) {
        plant::here(Place::Timer);
        let earliest = Cell::new(u64::MAX);
        let heaps = ForAlarm { alarm: self, inside, is_new: false, earliest: &earliest };
        match self.header().word.settle(&heaps) {
            Settled::Entered | Settled::Kept => {}
            // The caller's own is left.
            Settled::Removed => self.subtract_reference(),
        }
        if earliest.get() != u64::MAX {
            idle::poll_no_later_than(earliest.get());
        }
    }

    /// From a plain thread: a goroutine does it.
    #[cold]
    fn settle_from_outside(self) {
        // ORDERING: AcqRel for both exchanges: the goroutine that takes the flag back sees what was
        // changed before it was found set.
        if self.header().word.is_at_rest() || self.header().is_handed_over.swap(true, AcqRel) {
            return;
        }
        self.add_reference();
        let settle = move || {
            self.header().is_handed_over.swap(false, AcqRel);
            self.settle();
            // SAFETY: the reference that was added for this goroutine.
            unsafe { self.release() };
        };
        // SAFETY: the alarm may cross threads, and its reference keeps it.
        if unsafe { spawn(settle, SpawnOptions::default(), self.header().site) }.is_err() {
            rt_abort!("a goroutine with the default stack could not be made");
        }
    }
}

/// The heaps as `AlarmWord` sees them, for one alarm.
struct ForAlarm<'a> {
    alarm: AlarmRef,
    inside: &'a Inside,
    /// Whether the heap's reference is counted already.
    is_new: bool,
    /// The alarm's time, if it became the first of its heap.
    earliest: &'a Cell<u64>,
}

struct LockedTimers<'a> {
    alarm: AlarmRef,
    timers: &'static Timers,
    heap: LockGuard<'static, Heap>,
    is_new: bool,
    earliest: &'a Cell<u64>,
}

impl<'a> Heaps for ForAlarm<'a> {
    type Locked = LockedTimers<'a>;

    #[inline]
    fn own(&self) -> NonZeroUsize {
        NonNull::from(&self.inside.processor().timers).addr()
    }

    #[inline]
    fn lock(&self, heap: NonZeroUsize) -> LockedTimers<'a> {
        let timers = heap.get() as *const Timers;
        // SAFETY: made by `own`; processors are never freed.
        let timers = unsafe { &*timers };
        LockedTimers {
            alarm: self.alarm,
            timers,
            heap: timers.heap.lock(),
            is_new: self.is_new,
            earliest: self.earliest,
        }
    }
}

impl LockedTimers<'_> {
    /// The alarm stands where it did not stand before.
    #[inline]
    fn publish(&mut self, when: u64) {
        if self.heap.first().is_some_and(|first| first.hook() == self.alarm.hook()) {
            self.timers.publish_next(&self.heap);
            self.earliest.set(when);
        }
    }
}

impl LockedHeap for LockedTimers<'_> {
    #[inline]
    fn push(&mut self, when: u64) {
        if !self.is_new {
            self.alarm.add_reference();
        }
        // SAFETY: the reference keeps it until it leaves the heap.
        unsafe { self.heap.push(Entry::new(when, self.alarm.hook())) };
        self.timers.publish_len(&self.heap);
        self.publish(when);
    }

    #[inline]
    fn advance(&mut self, when: u64) {
        if self.heap.advance(&self.alarm.header().hook, when) {
            self.publish(when);
        }
    }

    #[inline]
    fn remove(&mut self) {
        self.heap.remove(&self.alarm.header().hook);
        self.timers.publish_next(&self.heap);
    }
}

/// Alarms whose firing begins, in order.
pub(super) struct Starts {
    first: Option<AlarmRef>,
    last: Option<AlarmRef>,
}

impl Starts {
    pub(super) const fn new() -> Starts {
        Starts { first: None, last: None }
    }

    /// Looks at the first of `heap`, which is an alarm's.
    ///
    /// # Safety
    /// * `hook` is that alarm's.
    pub(super) unsafe fn fire(&mut self, hook: *const Hook, now: u64, heap: &mut Heap) {
        // SAFETY: by the caller.
        let alarm = unsafe { AlarmRef::of_hook(hook) };
        let word = &alarm.header().word;
        let check = word.check(now);
        if let Check::Later(when) = check {
            return heap.delay_first(when);
        }
        heap.pop();
        word.leave_heap();
        match check {
            // The heap's reference goes to the firing.
            Check::Fire if word.begin_firing() => self.push(alarm),
            // The end of the firing that runs starts this one, with its reference.
            Check::Fire => {}
            // Who stopped it has yet to settle, and has a reference.
            Check::Stopped | Check::Later(_) => alarm.subtract_reference(),
        }
    }

    fn push(&mut self, alarm: AlarmRef) {
        alarm.header().next.set(None);
        match self.last.replace(alarm) {
            Some(last) => last.header().next.set(Some(alarm)),
            None => self.first = Some(alarm),
        }
    }

    /// Appends their goroutines to `made`.
    pub(super) fn make_goroutines(self, p: Option<&'static Processor>, made: &mut List<GRef>) {
        let mut next = self.first;
        while let Some(alarm) = next {
            // Once its goroutine is known it may start again.
            next = alarm.header().next.get();
            made.push_back(make_goroutine(alarm, p));
        }
    }
}

/// The goroutine of a firing, runnable. `p` is the caller's processor, if it holds one.
fn make_goroutine(alarm: AlarmRef, p: Option<&'static Processor>) -> GRef {
    let header = alarm.header();
    let (g, id) = match p {
        Some(p) => {
            // SAFETY: the caller's machine holds `p`, inside the runtime.
            let core = unsafe { p.core() };
            p.counters.created.add();
            (core.take_descriptor(), core.next_id())
        }
        None => {
            SCHEDULER.count_created_outside();
            (SCHEDULER.take_free_from_outside(), SCHEDULER.take_ids(1))
        }
    };
    let config = start::ensure_started();
    names::set_identity(g, id, None);
    g.set_origin(header.site, header.parent);
    g.class.set(config.class);
    g.set_shares_tls(config.shares_tls);
    g.task.set(Some(alarm.0.cast()));
    let _ = g.permit.take();
    transition::created(g);
    g
}

/// Runs the function. The goroutine's task.
///
/// # Safety
/// * `task` is the header of an `Alarm<F>`; the goroutine of its firing calls this, once.
unsafe fn run<F: FnMut()>(task: NonNull<TaskHeader>) -> Ended {
    let alarm = task.cast::<Alarm<F>>().as_ptr();
    // SAFETY: one firing at a time has the function.
    let function = unsafe { (*alarm).function.get() };
    // SAFETY: as above; it is dropped with the last reference to it, and this firing has one.
    let function: &mut F = unsafe { &mut *function };
    let outcome = catch_unwind(AssertUnwindSafe(function));
    let ended = if outcome.is_ok() { Ended::Returned } else { Ended::Panicked };
    let guard = AbortOnUnwind("what an alarm's goroutine left panicked while it was dropped");
    drop(outcome);
    // SAFETY: this firing's reference; the function is not used below.
    unsafe { AlarmRef(task.cast()).release_function() };
    std::mem::forget(guard);
    ended
}

/// The goroutine has ended, its thread-locals included.
///
/// # Safety
/// * `task` is an alarm's header whose goroutine has completed it, and owns it.
unsafe fn end_firing(task: NonNull<TaskHeader>) {
    let alarm = AlarmRef(task.cast());
    alarm.header().task.renew();
    if alarm.header().word.end_firing() {
        start_next(alarm);
    }
    // SAFETY: the rest of this firing's reference.
    unsafe { alarm.release_memory() };
}

/// Starts the firing that had to wait for the one before it.
#[cold]
fn start_next(alarm: AlarmRef) {
    let Some(inside) = Inside::enter() else {
        rt_abort!("an alarm's goroutine ended on a plain thread")
    };
    let p = inside.processor();
    let g = make_goroutine(alarm, Some(p));
    park::push_next(p, g);
    idle::wake_one();
    inside.leave();
}

/// # Safety
/// * `alarm` is an `Alarm<F>`; nobody will call its function.
unsafe fn drop_function<F>(alarm: AlarmRef) {
    let alarm = alarm.0.cast::<Alarm<F>>().as_ptr();
    // SAFETY: by the caller.
    let function = unsafe { (*alarm).function.get() };
    // SAFETY: nobody else has it.
    let function = unsafe { &mut *function };
    // SAFETY: by the caller; the last reference drops it, once.
    unsafe { ManuallyDrop::drop(function) };
}

/// # Safety
/// * `alarm` is an `Alarm<F>` whose function was dropped, and nobody uses it any more.
unsafe fn free<F>(alarm: AlarmRef) {
    // SAFETY: by the caller; made by `Box`.
    drop(unsafe { Box::from_raw(alarm.0.cast::<Alarm<F>>().as_ptr()) });
}

/// # Safety
/// * Never called: nobody joins an alarm's goroutine, and it leaves no result.
unsafe fn no_result(_: NonNull<TaskHeader>) {
    rt_abort!("an alarm's goroutine has no result");
}

/// # Safety
/// * As for `no_result`.
unsafe fn no_outcome(_: NonNull<TaskHeader>, _: *mut ()) {
    rt_abort!("an alarm's goroutine has no outcome");
}

/// Runs `f` in a goroutine of its own once `d` has passed. Go's `time.AfterFunc`.
///
/// The function stays with the handle and may run again after [`reset`](AfterFunc::reset), each time
/// in a new goroutine. It runs once at a time: where Go's runs beside itself, a firing waits here for
/// the end of the one before. Its panic is that goroutine's. Works on plain threads too.
///
/// Dropping the handle cancels nothing. A `d` beyond the clock's range never passes.
///
/// ```
/// use gosched_sched::after_func;
/// use std::{sync::mpsc, time::Duration};
///
/// let (tell, told) = mpsc::channel();
/// let alarm = after_func(Duration::from_millis(1), move || tell.send("now").unwrap());
/// assert_eq!(told.recv(), Ok("now"));
/// assert!(!alarm.stop()); // it has fired
/// ```
#[track_caller]
pub fn after_func<F: FnMut() + Send + 'static>(d: Duration, f: F) -> AfterFunc {
    start::ensure_started();
    let alarm = Box::new(Alarm {
        header: Header {
            task: TaskHeader::without_result(
                &const {
                    Vtable {
                        run: run::<F>,
                        drop_result: no_result,
                        free: end_firing,
                        take: no_outcome,
                        block: None,
                        name: std::any::type_name::<F>,
                    }
                },
            ),
            hook: Hook::new(Kind::Alarm),
            word: AlarmWord::set_for(super::after(d)),
            references: AtomicUsize::new(REFERENCE),
            is_handed_over: AtomicBool::new(false),
            next: Cell::new(None),
            drop_function: drop_function::<F>,
            free: free::<F>,
            site: Location::caller(),
            parent: current::current().map_or(0, |g| g.id()),
        },
        function: UnsafeCell::new(ManuallyDrop::new(f)),
    });
    let alarm = AlarmRef(NonNull::from(Box::leak(alarm)).cast());
    alarm.settle_first();
    AfterFunc { alarm }
}

/// The handle of [`after_func`]. Go's `time.Timer` of `time.AfterFunc`.
///
/// ```
/// use gosched_sched::after_func;
/// use std::time::Duration;
///
/// let alarm = after_func(Duration::from_secs(3600), || unreachable!());
/// assert!(alarm.stop());
/// assert!(!alarm.stop());
/// ```
pub struct AfterFunc {
    alarm: AlarmRef,
}

// SAFETY: the function is `Send`, and called by one goroutine at a time; all else is atomic.
unsafe impl Send for AfterFunc {}
// SAFETY: as above.
unsafe impl Sync for AfterFunc {}

impl AfterFunc {
    /// Keeps the function from running. Go's `Timer.Stop`.
    ///
    /// True if this has prevented a run; false if the function was started, or stopped, before. It
    /// does not wait for a function that runs.
    pub fn stop(&self) -> bool {
        let was_set = self.alarm.header().word.stop();
        if was_set {
            self.alarm.settle();
        }
        was_set
    }

    /// Makes the function run once `d` has passed from now. Go's `Timer.Reset`.
    ///
    /// True if it was to run at another time, which is off now; false if it was started, or stopped,
    /// before. In that case it runs once more.
    ///
    /// ```
    /// use gosched_sched::after_func;
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let alarm = after_func(Duration::from_secs(3600), move || tell.send(()).unwrap());
    /// assert!(alarm.reset(Duration::from_millis(1)));
    /// told.recv().unwrap();
    /// assert!(!alarm.reset(Duration::from_millis(1)));
    /// told.recv().unwrap();
    /// ```
    pub fn reset(&self, d: Duration) -> bool {
        let was_set = self.alarm.header().word.set(super::after(d));
        self.alarm.settle();
        was_set
    }
}

impl Drop for AfterFunc {
    fn drop(&mut self) {
        // SAFETY: the handle's reference.
        unsafe { self.alarm.release() };
    }
}

// A panic of the function is its goroutine's, and changes nothing here.
impl UnwindSafe for AfterFunc {}
impl RefUnwindSafe for AfterFunc {}

impl fmt::Debug for AfterFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("AfterFunc { .. }")
    }
}
