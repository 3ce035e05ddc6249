//! The goroutine's descriptor (G).
//!
//! Two cache lines: the suspended context, and what queues and wakers need. Descriptors live in
//! type-stable slabs (see `slab`): a stale reference finds another goroutine or a dead one, never
//! other memory. Stack, thread-local block and result live elsewhere and come and go.
//!
//! Invariants
//! * I1. `context`, `fiber`, `task` are touched only by the goroutine's owner of the moment (who
//!   that is, the status says).
//! * I2. `id` is written once for each life, before the goroutine is published.

use crate::latency::WAKES_TO_A_LATENCY;
use crate::reason::WaitReason;
use crate::task::TaskHeader;
use gosched_base::os;
use gosched_fiber::Fiber;
use gosched_fiber::arch::{self, Context};
use gosched_fiber::stack::Class;
use gosched_fiber::tls;
use gosched_protocol::{Permit, StatusWord};
use gosched_runq::{Link, Linked, Token};
use std::cell::{Cell, UnsafeCell};
use std::ops::Deref;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed,
    compiler_fence,
};

/// A goroutine's number. Never used twice; 1 is the main goroutine.
pub type GoroutineId = u64;

/// In `preemption_off`: how often it was forbidden.
const DEPTH: u8 = 0x7f;
/// In `preemption_off`: a request came meanwhile.
const DEFERRED: u8 = 0x80;
/// In `slice_used`: it had to be stopped at its slice's end.
const USED_UP: u16 = u16::MAX;
/// In `slice_used`: and has waited since.
const HAS_WAITED: u16 = USED_UP - 1;
/// It was stopped between two instructions, and has not gone on since.
const STOPPED: u8 = 2;

/// In `marks`: it runs on an M's thread-locals (`Tls::Shared`).
const SHARES_TLS: u8 = 1;
/// In `marks`: when it became runnable is noted with its context.
const IS_STAMPED: u8 = 2;
/// In `marks`: what is added each time that it becomes runnable.
const ONE_WAKE: u8 = 4;
const _: () = assert!(256 / ONE_WAKE as u32 == WAKES_TO_A_LATENCY, "round once, and it is time");

/// What is to be done about a goroutine that is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// Nothing.
    Not,
    /// It runs on the thread's own thread-locals.
    SharesTls,
    /// It was noted when it became runnable. It may share thread-locals too.
    Stamped,
}

/// A goroutine's descriptor.
#[repr(C, align(128))]
pub(crate) struct Goroutine {
    /// Where it goes on. Written by: the switch that leaves it. Read by: the switch that resumes.
    pub(crate) context: UnsafeCell<Context>,
    /// For run queues and free lists.
    link: Link,
    /// Its stack and thread-local block, from its first run to its end.
    pub(crate) fiber: Cell<Option<Fiber>>,
    /// What it runs, and where the result goes.
    pub(crate) task: Cell<Option<NonNull<TaskHeader>>>,
    /// Written by: the spawner. Read by: anyone; tells one life from the next.
    id: AtomicU64,
    pub(crate) status: StatusWord,
    /// Why it waits. Written by: itself before it parks. Read by: dumps.
    reason: AtomicU8,
    /// The token of `thread::park`.
    pub(crate) permit: Permit,
    /// [`SHARES_TLS`], [`IS_STAMPED`], and above them how often it became runnable, round and round.
    /// Written and read by: its owner of the moment.
    marks: Cell<u8>,
    /// [`STOPPED`]. Written by: itself. Read by: the last spare machine.
    preempted: AtomicU8,
    /// How often it has forbidden to be stopped, and whether somebody wanted to meanwhile.
    /// Written by: itself and signal handlers on its thread. Read by: the same.
    preemption_off: AtomicU8,
    /// The size of its stack.
    pub(crate) class: Cell<Class>,
    /// How long its name is in `names`; 0 without one. Written by: the spawner. Read by: dumps.
    pub(crate) name_bytes: AtomicU8,
    /// When a dump or the monitor first saw it wait, in minutes; 0 while it doesn't wait.
    waiting_since: AtomicU16,
    /// How much of its slice it had used when it was stopped for an urgent one, in units of 2^16 ns;
    /// [`USED_UP`], [`HAS_WAITED`].
    /// Written by: the monitor, itself. Read by: the monitor.
    slice_used: AtomicU16,
    /// The machine it is locked to, by number plus one; 0 if it is not locked.
    /// Written by: itself. Read by: whoever takes it from a queue.
    locked: AtomicU32,
    /// Where it was spawned. Written by: the spawner. Read by: dumps.
    site: AtomicPtr<Location<'static>>,
    /// The goroutine that spawned it; 0 for a plain thread. As `site`.
    parent: AtomicU64,
}

/// Zeroes are valid in every field (`slab` relies on it): atomics, `None`s of pointers, the class
/// of number 0.
const _: () = assert!(size_of::<Goroutine>() == 128);

// SAFETY: the cells are touched by the owner of the moment only (I1); ownership is handed over by
// queues and wait structures, which synchronise.
unsafe impl Sync for Goroutine {}
// SAFETY: as above.
unsafe impl Send for Goroutine {}

impl Goroutine {
    #[inline]
    pub(crate) fn id(&self) -> GoroutineId {
        // ORDERING: Relaxed; whoever must not mistake a life for another compares twice or owns it.
        self.id.load(Relaxed)
    }

    /// Whether it runs on an M's thread-locals.
    #[inline]
    pub(crate) fn shares_tls(&self) -> bool {
        self.marks.get() & SHARES_TLS != 0
    }

    pub(crate) fn set_shares_tls(&self, shares: bool) {
        self.marks.set(self.marks.get() & !SHARES_TLS | if shares { SHARES_TLS } else { 0 });
    }

    /// Whether there is anything to do beside resuming it: one test at each switch.
    #[inline]
    pub(crate) fn marked(&self) -> Marked {
        match self.marks.get() & (SHARES_TLS | IS_STAMPED) {
            0 => Marked::Not,
            SHARES_TLS => Marked::SharesTls,
            _ => Marked::Stamped,
        }
    }

    pub(crate) fn set_stamped(&self, is_stamped: bool) {
        self.marks.set(self.marks.get() & !IS_STAMPED | if is_stamped { IS_STAMPED } else { 0 });
    }

    /// It becomes runnable once more; whether this time is to be sampled. The carry says so: adding and
    /// looking are two instructions.
    #[inline]
    pub(crate) fn count_wake(&self) -> bool {
        let (marks, is_round) = self.marks.get().overflowing_add(ONE_WAKE);
        self.marks.set(marks);
        is_round
    }

    /// Where the count of wakes begins: different for neighbours, so that of many goroutines that run
    /// once some are sampled. For a descriptor that was never used.
    pub(crate) fn start_count_at(&self, index: usize) {
        self.marks.set((index as u8).wrapping_mul(ONE_WAKE));
    }

    /// As [`id`](Goroutine::id), for `names`, whose version it is.
    #[inline]
    pub(crate) fn id_ordered(&self, order: Ordering) -> GoroutineId {
        self.id.load(order)
    }

    /// For `names`, whose version it is.
    #[inline]
    pub(crate) fn set_id(&self, id: GoroutineId, order: Ordering) {
        self.id.store(id, order);
    }

    /// Where and by whom it was spawned.
    #[inline]
    pub(crate) fn origin(&self) -> Option<(&'static Location<'static>, GoroutineId)> {
        // ORDERING: Relaxed; for dumps. Locations are statics.
        let site = self.site.load(Relaxed);
        // SAFETY: only `set_origin` stores here, statics.
        let site = unsafe { site.as_ref() }?;
        Some((site, self.parent.load(Relaxed)))
    }

    #[inline]
    pub(crate) fn set_origin(&self, site: &'static Location<'static>, parent: GoroutineId) {
        // ORDERING: Relaxed; published with the goroutine.
        self.site.store((site as *const Location<'static>).cast_mut(), Relaxed);
        self.parent.store(parent, Relaxed);
    }

    #[inline]
    pub(crate) fn reason(&self) -> WaitReason {
        // ORDERING: Relaxed; for dumps.
        WaitReason::from_number(self.reason.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_reason(&self, reason: WaitReason) {
        // ORDERING: Relaxed; for dumps.
        self.reason.store(reason as u8, Relaxed);
    }

    /// Whole minutes since a dump or the monitor first saw it wait (Go stamps at collections).
    pub(crate) fn waiting_minutes(&self) -> u16 {
        let now = (os::monotonic_ns() / 60_000_000_000) as u16;
        // ORDERING: Relaxed; for dumps.
        match self.waiting_since.load(Relaxed) {
            0 => {
                // From the next full minute on, so that none is counted that was not waited for.
                self.waiting_since.store(now.wrapping_add(1).max(1), Relaxed);
                0
            }
            since => (now.wrapping_sub(since) as i16).max(0) as u16,
        }
    }

    /// How much of its slice it has used before it was stopped for an urgent one, in nanoseconds.
    pub(crate) fn slice_used(&self) -> u64 {
        // ORDERING: Relaxed; steers only.
        match self.slice_used.load(Relaxed) {
            USED_UP | HAS_WAITED => 0,
            used => u64::from(used) << 16,
        }
    }

    pub(crate) fn set_slice_used(&self, ns: u64) {
        // ORDERING: Relaxed; steers only.
        self.slice_used.store((ns >> 16).min(u64::from(HAS_WAITED - 1)) as u16, Relaxed);
    }

    /// Its slice ends, by itself or by the monitor.
    #[inline]
    pub(crate) fn end_slice(&self) {
        // ORDERING: Relaxed; steers only. Read first: a store would dirty the line for nothing.
        if self.slice_used.load(Relaxed) != 0 {
            self.slice_used.store(0, Relaxed);
        }
    }

    /// Its slice ends because it waits.
    #[inline]
    pub(crate) fn end_slice_to_wait(&self) {
        // ORDERING: Relaxed; steers only.
        let used = self.slice_used.load(Relaxed);
        if used != 0 {
            self.slice_used.store(if used == USED_UP { HAS_WAITED } else { 0 }, Relaxed);
        }
    }

    /// It had to be stopped at its slice's end.
    pub(crate) fn use_slice_up(&self) {
        // ORDERING: Relaxed; steers only.
        self.slice_used.store(USED_UP, Relaxed);
    }

    /// Whether it had to be stopped at its slice's end before this wait, and after the one before;
    /// forgotten by asking.
    pub(crate) fn take_used_slice(&self) -> bool {
        // ORDERING: Relaxed; steers only.
        self.slice_used.swap(0, Relaxed) >= HAS_WAITED
    }

    /// Whether it was stopped between two instructions: it may hold any lock.
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed; the queue that it was taken from has ordered it.
        self.preempted.load(Relaxed) & STOPPED != 0
    }

    pub(crate) fn set_stopped(&self, is_stopped: bool) {
        self.mark(STOPPED, is_stopped);
    }

    fn mark(&self, bit: u8, is_set: bool) {
        // ORDERING: Relaxed for both; steers only.
        if is_set {
            self.preempted.fetch_or(bit, Relaxed);
        } else {
            self.preempted.fetch_and(!bit, Relaxed);
        }
    }

    pub(crate) fn is_preemption_off(&self) -> bool {
        // ORDERING: Relaxed; read in a signal handler on the thread that wrote it.
        self.preemption_off.load(Relaxed) & DEPTH != 0
    }

    /// Notes a request that came while it was forbidden. In a signal handler on its thread.
    pub(crate) fn defer_preemption(&self) {
        // ORDERING: Relaxed; as above. If the code it interrupts is about to store the depth, the
        // note is lost, and the monitor asks again.
        self.preemption_off.store(self.preemption_off.load(Relaxed) | DEFERRED, Relaxed);
    }

    #[inline]
    pub(crate) fn forbid_preemption(&self) {
        // ORDERING: Relaxed; as above. Nested 127 times it stays forbidden.
        let word = self.preemption_off.load(Relaxed);
        if word & DEPTH != DEPTH {
            self.preemption_off.store(word + 1, Relaxed);
        }
        // ORDERING: a fence for the compiler: the handler that reads the count runs on this thread.
        compiler_fence(Ordering::SeqCst);
    }

    /// Undoes one [`forbid_preemption`](Goroutine::forbid_preemption). True: that was the last one,
    /// and a request came meanwhile.
    #[inline]
    #[must_use]
    pub(crate) fn allow_preemption(&self) -> bool {
        // ORDERING: a fence for the compiler: the handler that reads the count runs on this thread.
        compiler_fence(Ordering::SeqCst);
        // ORDERING: Relaxed; as above.
        let word = self.preemption_off.load(Relaxed);
        match word & DEPTH {
            // A count that was full may have missed some.
            0 | DEPTH => false,
            1 => {
                self.preemption_off.store(0, Relaxed);
                word & DEFERRED != 0
            }
            _ => {
                self.preemption_off.store(word - 1, Relaxed);
                false
            }
        }
    }

    /// What the last goroutine with this descriptor left is forgotten.
    pub(crate) fn reset_preemption(&self) {
        // ORDERING: Relaxed; published with the goroutine.
        self.preemption_off.store(0, Relaxed);
    }

    /// The machine it is locked to.
    #[inline]
    pub(crate) fn locked_to(&self) -> Option<u32> {
        // ORDERING: Relaxed; handed over with the goroutine.
        self.locked.load(Relaxed).checked_sub(1)
    }

    pub(crate) fn set_locked_to(&self, machine: Option<u32>) {
        // ORDERING: Relaxed; as above.
        self.locked.store(machine.map_or(0, |id| id + 1), Relaxed);
    }

    #[inline]
    pub(crate) fn stop_waiting(&self) {
        // ORDERING: Relaxed; for dumps. Read first: a store would dirty the line for nothing.
        if self.waiting_since.load(Relaxed) != 0 {
            self.waiting_since.store(0, Relaxed);
        }
    }
}

/// A reference to a goroutine; what queues hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GRef(NonNull<Goroutine>);

// SAFETY: descriptors are Sync and type-stable for the process's life.
unsafe impl Send for GRef {}
// SAFETY: as above.
unsafe impl Sync for GRef {}

impl GRef {
    /// # Safety
    /// * `g` is a descriptor in a slab.
    #[inline]
    pub(crate) unsafe fn new(g: NonNull<Goroutine>) -> GRef {
        GRef(g)
    }

    /// # Safety
    /// * `g` is a descriptor in a slab.
    #[inline]
    pub(crate) unsafe fn from_address(g: *mut Goroutine) -> GRef {
        // SAFETY: by the caller; slabs are not at address 0.
        GRef(unsafe { NonNull::new_unchecked(g) })
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> *mut Goroutine {
        self.0.as_ptr()
    }

    /// Fetches the descriptor's lines into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_descriptor(self) {
        let at = self.as_ptr().addr();
        gosched_base::prefetch(at);
        gosched_base::prefetch(at + 64);
    }

    /// Fetches what it touches first when it runs. Others may own it: see
    /// [`arch::prefetch_suspended`].
    #[inline(always)]
    pub(crate) fn prefetch_context(self) {
        // SAFETY: descriptors are never freed.
        unsafe { arch::prefetch_suspended(self.context.get(), tls::lines_at_end()) };
        // SAFETY: as above.
        unsafe { arch::prefetch_through(self.task.as_ptr()) };
    }

    /// Where its code stands if it does not run. Anybody may ask; only its owner of the moment can
    /// rely on the answer.
    pub(crate) fn position(self) -> [usize; 3] {
        // SAFETY: descriptors are never freed.
        unsafe { arch::peek(self.context.get()) }
    }

    /// As [`has_started`](GRef::has_started), for anybody: a hint.
    #[cfg(feature = "frames")]
    pub(crate) fn seems_started(self) -> bool {
        // SAFETY: descriptors are never freed; a pointer, which is read as a whole.
        unsafe { self.fiber.as_ptr().read_volatile() }.is_some()
    }

    /// Whether it has run before (or is about to, with a stack attached).
    #[inline]
    pub(crate) fn has_started(self) -> bool {
        self.fiber.get().is_some()
    }
}

impl Deref for GRef {
    type Target = Goroutine;
    #[inline]
    fn deref(&self) -> &Goroutine {
        // SAFETY: descriptors are never freed.
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: the pointer goes in and comes back as it is.
unsafe impl Token for GRef {
    #[inline]
    fn into_ptr(self) -> NonNull<()> {
        self.0.cast()
    }

    #[inline]
    unsafe fn from_ptr(ptr: NonNull<()>) -> GRef {
        GRef(ptr.cast())
    }
}

// SAFETY: each descriptor has a link of its own.
unsafe impl Linked for GRef {
    #[inline]
    fn link(&self) -> &Link {
        // SAFETY: descriptors are never freed.
        unsafe { &(*self.0.as_ptr()).link }
    }
}

#[cfg(test)]
mod tests {
    use crate::slab;

    #[test]
    fn a_used_slice_costs_the_next_wake_and_no_other() {
        let g = slab::fresh();
        g.use_slice_up();
        assert_eq!(g.slice_used(), 0, "the next slice is whole");
        g.end_slice_to_wait();
        assert!(g.take_used_slice());
        assert!(!g.take_used_slice(), "it is forgotten");
        // Whoever does not ask lets it pass: the wait after that one is another matter.
        g.use_slice_up();
        g.end_slice_to_wait();
        g.end_slice_to_wait();
        assert!(!g.take_used_slice());
        // An end that others cause in the middle is not the goroutine's fault.
        g.set_slice_used(u64::MAX);
        assert!(g.slice_used() > 1_000_000_000);
        g.end_slice_to_wait();
        assert!(!g.take_used_slice());
        g.use_slice_up();
        g.end_slice();
        assert!(!g.take_used_slice());
    }
}
