//! The processor (P): the right to run goroutines, with what belongs to it.
//!
//! Split by who may touch it: the ring and the counters by anyone (atomics), [`Core`] by the
//! machine that holds the processor only, the timers under their lock.

use crate::attention::{self, PREEMPT};
use crate::blocks::Blocks;
use crate::chaos;
use crate::counters::PerProcessor;
use crate::foresight::Foresight;
use crate::goroutine::{GRef, GoroutineId};
use crate::histogram::Histogram;
use crate::jumps::Jumps;
use crate::machine::Machine;
use crate::monitor::SliceWatch;
use crate::near::{self, Place};
use crate::spare_descriptors::PORTION;
use crate::switch::FAIRNESS_ROUNDS;
use crate::timer::Timers;
use gosched_base::{CachePadded, Rng};
use gosched_fiber::stack::Class;
use gosched_fiber::{Fiber, pool};
use gosched_runq::{Injector, List, Owner, Ring};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Dead descriptors kept by a processor: a wave of a thousand tasks. (Go: 64.)
pub(crate) const FREE_MAX: usize = 1024;
/// Idle fibers kept by a processor; above, half go to the pool.
const FIBERS_MAX: usize = 64;

/// A processor. Never freed.
#[repr(C)]
pub(crate) struct Processor {
    /// Runnable goroutines. Written by: the holder, thieves.
    pub(crate) ring: Ring<GRef>,
    /// Requests to the holder, see `attention`. Written by: anyone. Read by: the holder.
    pub(crate) attention: CachePadded<AtomicU32>,
    /// Goroutines that the monitor wants to run before all others. Written by: the monitor.
    /// Read by: the holder, thieves.
    pub(crate) urgent: Injector<GRef>,
    /// The tick that the monitor saw last, and since when. Monitor only.
    pub(crate) slice: SliceWatch,
    /// The tick whose goroutine is asked to yield. Written by: the monitor. Read by: the holder.
    yield_tick: AtomicU32,
    /// Rounds of the scheduler. Written by: the holder. Read by: the monitor.
    tick: AtomicU32,
    pub(crate) id: u32,
    /// Where it is, see `near`.
    pub(crate) place: Place,
    /// The machine that holds it; null if idle. Written by: the holder. Read by: dumps.
    machine: AtomicPtr<Machine>,
    /// The holder wakes somebody, which takes longer than thieves leave its next slot alone. In a line
    /// of its own: thieves look at it while the holder writes all around. Written by: the holder. Read
    /// by: thieves.
    is_waking: CachePadded<AtomicBool>,
    /// The machine that gave it up when the world was stopped. Written by: that one, the stopper.
    stopped: AtomicPtr<Machine>,
    pub(crate) timers: Timers,
    /// In lines of their own: the timers' lock, before them, is taken by others. Written by: the holder.
    /// Read by: anyone.
    pub(crate) counters: CachePadded<PerProcessor>,
    /// What its declared calls were like.
    pub(crate) foresight: Foresight,
    /// How long goroutines were runnable that ran here. As the counters.
    pub(crate) latencies: Histogram,
    /// What the trace says of it. Written by: whoever has it in hand.
    pub(crate) traced: AtomicU64,
    core: UnsafeCell<Core>,
}

// SAFETY: `core` is for the holder only, one machine at a time; all else is atomic or locked.
unsafe impl Sync for Processor {}

/// What only the holder touches.
pub(crate) struct Core {
    pub(crate) rng: Rng,
    /// Dead descriptors.
    free: List<GRef>,
    /// Idle fibers of the default class, hottest last.
    fibers: [Option<Fiber>; FIBERS_MAX],
    fiber_count: usize,
    /// Goroutine numbers not given out yet.
    ids: Range<GoroutineId>,
    /// Memory for tasks.
    pub(crate) blocks: Blocks,
    /// Who was passed at the ring's head.
    pub(crate) jumps: Jumps,
    /// Where the ring's head was when the global queue last went first.
    pub(crate) passed_by_global: Option<u32>,
}

impl Processor {
    #[inline]
    pub(crate) fn leak(id: u32) -> &'static Processor {
        let (rng, attention) = chaos::of_processor(id);
        Box::leak(Box::new(Processor {
            ring: Ring::new(),
            attention: CachePadded::new(AtomicU32::new(attention)),
            urgent: Injector::new(),
            slice: SliceWatch::default(),
            yield_tick: AtomicU32::new(0),
            tick: AtomicU32::new(0),
            id,
            place: near::place(id),
            machine: AtomicPtr::new(std::ptr::null_mut()),
            is_waking: CachePadded::new(AtomicBool::new(false)),
            stopped: AtomicPtr::new(std::ptr::null_mut()),
            timers: Timers::new(),
            counters: CachePadded::new(PerProcessor::default()),
            foresight: Foresight::new(),
            latencies: Histogram::new(),
            traced: AtomicU64::new(0),
            core: UnsafeCell::new(Core {
                rng,
                free: List::new(),
                fibers: [None; FIBERS_MAX],
                fiber_count: 0,
                ids: 0..0,
                blocks: Blocks::EMPTY,
                jumps: Jumps::default(),
                passed_by_global: None,
            }),
        }))
    }

    /// The holder's part.
    ///
    /// # Safety
    /// * The caller runs on the machine that holds this processor, inside the runtime, and has no
    ///   other reference to the core.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the holder is one thread; callers keep borrows short")]
    pub(crate) unsafe fn core(&self) -> &mut Core {
        // SAFETY: by the caller.
        unsafe { &mut *self.core.get() }
    }

    /// The owner's side of the ring.
    ///
    /// # Safety
    /// * As for [`core`](Processor::core).
    #[inline(always)]
    pub(crate) unsafe fn queue(&self) -> Owner<'_, GRef> {
        // SAFETY: by the caller.
        unsafe { self.ring.owner() }
    }

    /// How many times the scheduler has gone round on it.
    #[inline]
    pub(crate) fn tick(&self) -> u32 {
        // ORDERING: Relaxed; written by the holder, a hint for others.
        self.tick.load(Relaxed)
    }

    /// Asks the goroutine that runs now to yield; one that runs later is not meant.
    pub(crate) fn ask_to_yield(&self) {
        // ORDERING: Relaxed; published with the bit.
        self.yield_tick.store(self.tick(), Relaxed);
        attention::ask(self, PREEMPT);
    }

    /// Whether the goroutine that runs now was asked to yield; forgotten by asking. Holder only.
    pub(crate) fn take_yield_asked(&self) -> bool {
        // ORDERING: Acquire pairs with `ask_to_yield`.
        let asked = self.attention.fetch_and(!PREEMPT, Acquire) & PREEMPT != 0;
        asked && self.yield_tick.load(Relaxed) == self.tick()
    }

    /// One round more. Holder only.
    #[inline]
    pub(crate) fn count_tick(&self) {
        // ORDERING: Relaxed; see `tick`.
        self.tick.store(self.tick.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Moves it towards its next fairness round by up to `rounds`. Whoever has it in hand.
    pub(crate) fn age(&self, rounds: u32) {
        // ORDERING: Relaxed for both; see `tick`.
        let tick = self.tick.load(Relaxed);
        let left = FAIRNESS_ROUNDS - 1 - tick % FAIRNESS_ROUNDS;
        self.tick.store(tick.wrapping_add(rounds.min(left)), Relaxed);
    }

    #[inline]
    pub(crate) fn set_machine(&self, m: Option<&'static Machine>) {
        let m = m.map_or(std::ptr::null(), |m| m as *const Machine);
        // ORDERING: Release pairs with `machine`: who finds it here may be the first to see it.
        self.machine.store(m.cast_mut(), Release);
    }

    #[inline]
    pub(crate) fn machine(&self) -> Option<&'static Machine> {
        // ORDERING: Acquire pairs with `set_machine`; the monitor looks into a machine that may be new.
        let m = self.machine.load(Acquire);
        // SAFETY: machines are never freed.
        unsafe { m.as_ref() }
    }

    /// Whether the holder is in the middle of waking somebody; a hint.
    pub(crate) fn is_waking(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.is_waking.load(Relaxed)
    }

    pub(crate) fn set_waking(&self, is_waking: bool) {
        // ORDERING: Relaxed; as above.
        self.is_waking.store(is_waking, Relaxed);
    }

    /// `machine` has given it up, because the world is being stopped.
    pub(crate) fn note_stopped(&self, machine: &'static Machine) {
        // ORDERING: Relaxed; published by the count of processors that are stopped.
        self.stopped.store((machine as *const Machine).cast_mut(), Relaxed);
    }

    /// The machine that gave it up, for the one who starts the world.
    pub(crate) fn take_stopped(&self) -> Option<&'static Machine> {
        // ORDERING: Relaxed; as above.
        let machine = self.stopped.swap(std::ptr::null_mut(), Relaxed);
        // SAFETY: machines are never freed.
        unsafe { machine.as_ref() }
    }
}

impl Core {
    /// The next goroutine number. Batches of 16, as Go's.
    #[inline]
    pub(crate) fn next_id(&mut self) -> GoroutineId {
        if self.ids.is_empty() {
            let first = crate::scheduler::SCHEDULER.take_ids(16);
            self.ids = first..first + 16;
        }
        let id = self.ids.start;
        self.ids.start += 1;
        id
    }

    /// A dead descriptor.
    #[inline]
    pub(crate) fn take_descriptor(&mut self) -> GRef {
        let g = match self.free.pop_front() {
            Some(g) => g,
            None => self.refill_descriptors(),
        };
        if let Some(next) = self.free.first() {
            next.prefetch_descriptor();
        }
        g
    }

    #[cold]
    fn refill_descriptors(&mut self) -> GRef {
        self.free.append(crate::scheduler::SCHEDULER.take_free());
        self.free.pop_front().unwrap_or_else(crate::slab::fresh)
    }

    /// Keeps a dead descriptor for the next goroutine.
    #[inline]
    pub(crate) fn give_descriptor(&mut self, g: GRef) {
        self.free.push_front(g);
        if self.free.len() >= FREE_MAX {
            crate::scheduler::SCHEDULER.give_free(self.free.take(PORTION));
        }
    }

    /// An idle fiber of `class`.
    #[inline]
    pub(crate) fn take_fiber(&mut self, class: Class) -> Option<Fiber> {
        if class == Class::DEFAULT && self.fiber_count > 0 {
            self.fiber_count -= 1;
            return self.fibers[self.fiber_count].take();
        }
        pool::take(class)
    }

    /// Keeps a finished fiber for the next goroutine.
    ///
    /// # Safety
    /// * The fiber's goroutine has ended, and nobody runs on it but, perhaps, the caller.
    #[inline]
    pub(crate) unsafe fn give_fiber(&mut self, fiber: Fiber) {
        // SAFETY: by the caller; the runtime touches no thread-local.
        if !unsafe { fiber.is_reusable() } {
            // SAFETY: finished and given up by the caller.
            return unsafe { pool::discard(fiber) };
        }
        // SAFETY: reusable, and given up by the caller.
        unsafe { self.keep_fiber(fiber) };
    }

    /// Keeps a fiber that can be used again.
    ///
    /// # Safety
    /// * As for [`pool::give`].
    #[inline]
    pub(crate) unsafe fn keep_fiber(&mut self, fiber: Fiber) {
        if fiber.class() != Class::DEFAULT {
            // SAFETY: reusable, and given up by the caller.
            return unsafe { pool::give(fiber) };
        }
        if self.fiber_count == FIBERS_MAX {
            self.spill_fibers();
        }
        self.fibers[self.fiber_count] = Some(fiber);
        self.fiber_count += 1;
    }

    /// Makes the fiber on which the caller runs ready for its next goroutine, in place. False if
    /// it can't be reused.
    ///
    /// # Safety
    /// * As for [`give_fiber`](Core::give_fiber).
    #[inline]
    pub(crate) unsafe fn renew_in_place(&mut self, fiber: Fiber) -> bool {
        // SAFETY: by the caller.
        unsafe { fiber.renew() }
    }

    /// The coldest half goes to the pool.
    #[cold]
    fn spill_fibers(&mut self) {
        for fiber in &mut self.fibers[..FIBERS_MAX / 2] {
            if let Some(fiber) = fiber.take() {
                // SAFETY: fibers kept here are reusable, and this was the only copy.
                unsafe { pool::give(fiber) };
            }
        }
        self.fibers.rotate_left(FIBERS_MAX / 2);
        self.fiber_count -= FIBERS_MAX / 2;
    }

    /// Everything cached goes to the global lists: the processor goes out of service.
    pub(crate) fn flush(&mut self) {
        while self.fiber_count > 0 {
            self.fiber_count -= 1;
            if let Some(fiber) = self.fibers[self.fiber_count].take() {
                // SAFETY: fibers kept here are reusable, and this was the only copy.
                unsafe { pool::give(fiber) };
            }
        }
        self.blocks.flush();
        let all = self.free.len();
        crate::scheduler::SCHEDULER.give_free(self.free.take(all));
    }
}
