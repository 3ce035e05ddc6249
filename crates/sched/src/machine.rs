//! The machine (M): a thread that runs goroutines while it holds a processor.
//!
//! Invariants
//! * I1. A machine runs goroutine code only with a processor.
//! * I2. `in_runtime` is 1 from entering a scheduler operation to leaving it, and always on the
//!   scheduler's stack. While it is 1 the code must not allocate or free, take a lock that outside
//!   code can hold, format, panic or call user code: a goroutine may be stopped anywhere outside,
//!   whatever it holds.
//! * I3. Everything outside code touches of its machine is one instruction relative to GS
//!   ([`Inside::enter`]); once `in_runtime` is 1 the code can't move to another machine.

use crate::fleet;
use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::monitor::{REVOKER, Share, Watch};
use crate::observe::Eyes;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::signal_mask::Mask;
use crate::trace::{self, Lane};
use gosched_base::{Parker, os, rt_abort};
use gosched_fiber::arch::Context;
use gosched_fiber::fault::SignalStack;
use gosched_fiber::host::{self, Host};
use gosched_fiber::thread::{self, Body};
use gosched_protocol::Ownership;
use std::cell::{Cell, UnsafeCell};
use std::ffi::CStr;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    compiler_fence,
};

/// A machine's record. Never freed: signal handlers and stale readers may hold it.
#[repr(C)]
pub(crate) struct Machine {
    /// First, so that GS points at the machine.
    host: Host,
    /// I2. Written by: this thread. Read by: its signal handlers, the monitor.
    in_runtime: AtomicU32,
    /// Whether it still owns its processor. Right behind the flag, see `current_outside`.
    pub(crate) ownership: Ownership,
    /// +1 at each leave. Written by: this thread. Read by: the monitor.
    leaves: AtomicU32,
    /// The goroutine whose code runs, or ran last before the scheduler's.
    /// Written by: this thread. Read by: dumps.
    current: AtomicPtr<()>,
    /// A preemption signal is on its way, and which. Written by: the monitor, the handler.
    preempt_asked: AtomicU8,
    /// The goroutine that is on its way to the trampoline was stopped by force. This thread only.
    pub(crate) was_forced: Cell<bool>,
    /// How often in a row the signal could not stop anything, found a user's handler, or libc.
    /// This thread only.
    pub(crate) refused: Cell<u32>,
    pub(crate) refused_in_handler: Cell<u32>,
    pub(crate) refused_in_libc: Cell<u32>,
    /// The processor it holds; null if none. Written by: this thread (and, later, revokers).
    processor: AtomicPtr<Processor>,
    /// The scheduler's own context, while a goroutine runs.
    pub(crate) context: UnsafeCell<Context>,
    /// Where it sleeps when it is not the poller.
    pub(crate) parker: Parker,
    /// A processor handed over by whoever woke it.
    handed: AtomicPtr<Processor>,
    /// Whether it counts among the searchers.
    pub(crate) is_searching: Cell<bool>,
    /// Its last search has found a next slot, and come too late for what was in it.
    pub(crate) sees_pair: Cell<bool>,
    pub(crate) id: u32,
    tid: AtomicU32,
    /// For its thread. Written by: the starter, while there is no thread. Taken by: the thread.
    signal_stack: Cell<Option<SignalStack>>,
    /// What the kernel says of its thread. Read by: the monitor.
    pub(crate) eyes: Eyes,
    /// Whether it lost its processor in a futex. Written by: the revoker, itself.
    pub(crate) lost_in_futex: AtomicBool,
    /// What the monitor saw last. Monitor only.
    pub(crate) watch: Watch,
    /// What the kernel gave it. Monitor only.
    pub(crate) share: Share,
    /// Where its thread writes events.
    pub(crate) lane: Lane,
    /// The goroutine that is locked to this thread, and how often. This thread only.
    pub(crate) locked: Cell<Option<GRef>>,
    pub(crate) lock_depth: Cell<u32>,
    /// Whether that goroutine is locked to it because it unwinds. This thread only.
    pub(crate) unwinds: Cell<bool>,
    /// Its signal mask, and whether a goroutine that has one of its own is locked to it for that.
    /// This thread only.
    pub(crate) mask: Cell<Mask>,
    pub(crate) has_own_mask: Cell<bool>,
    /// That goroutine believes that SIGURG is blocked.
    pub(crate) hides_urgent: Cell<bool>,
    /// Its locked goroutine has ended: so does the thread.
    pub(crate) is_ending: Cell<bool>,
    /// When it gave its processor away for the call that it is in; 0 if it did not. This thread only.
    pub(crate) handed_on_at: Cell<u64>,
    /// The node that its thread is tied to. This thread only.
    pub(crate) pinned_to: Cell<Option<u16>>,
    /// The node of the processor that it held last. Written by: this thread. Read by: wakers, under the
    /// scheduler's lock, while it sleeps.
    pub(crate) node: Cell<u16>,
    /// It was taken from the sleeping to end. Written by: whoever took it. Read by: this thread, woken
    /// by that one.
    pub(crate) is_dismissed: Cell<bool>,
    /// Its neighbours among the sleeping machines, or the next of the ended ones.
    /// Guarded by: the scheduler's lock, or the fleet's.
    pub(crate) next_idle: Cell<*const Machine>,
    pub(crate) previous_idle: Cell<*const Machine>,
    /// Whether it is among the sleeping. Guarded by: the scheduler's lock.
    pub(crate) is_among_sleeping: Cell<bool>,
}

/// What a preemption signal is for. Bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Asked {
    /// To stop a goroutine that computes.
    Computing = 1,
    /// To end a blocked call, see `interrupt`.
    Forced = 2,
}

// SAFETY: the cells are touched by the machine's thread only, or under the named lock.
unsafe impl Sync for Machine {}
// SAFETY: a record is made on one thread and used on another; see above.
unsafe impl Send for Machine {}

impl Machine {
    /// The machine of the calling thread, whatever the thread does; `None` on a plain thread.
    pub(crate) fn current_here() -> Option<&'static Machine> {
        let machine = host::current_machine().cast::<Machine>();
        // SAFETY: every host of this process is a machine, and machines are never freed.
        unsafe { machine.as_ref() }
    }

    /// A new record, for ever. Allocates.
    pub(crate) fn leak(id: u32) -> &'static Machine {
        let machine: &'static Machine = Box::leak(Box::new(Machine {
            host: Host::unbound(),
            in_runtime: AtomicU32::new(1),
            ownership: Ownership::new(),
            leaves: AtomicU32::new(0),
            eyes: Eyes::closed(),
            lost_in_futex: AtomicBool::new(false),
            watch: Watch::default(),
            share: Share::default(),
            current: AtomicPtr::new(std::ptr::null_mut()),
            preempt_asked: AtomicU8::new(0),
            was_forced: Cell::new(false),
            refused: Cell::new(0),
            refused_in_handler: Cell::new(0),
            refused_in_libc: Cell::new(0),
            processor: AtomicPtr::new(std::ptr::null_mut()),
            context: UnsafeCell::new(Context::empty()),
            parker: Parker::new(),
            handed: AtomicPtr::new(std::ptr::null_mut()),
            is_searching: Cell::new(false),
            sees_pair: Cell::new(false),
            id,
            tid: AtomicU32::new(0),
            signal_stack: Cell::new(None),
            lane: Lane::new(),
            locked: Cell::new(None),
            lock_depth: Cell::new(0),
            unwinds: Cell::new(false),
            mask: Cell::new(crate::start::machine_mask()),
            has_own_mask: Cell::new(false),
            hides_urgent: Cell::new(false),
            is_ending: Cell::new(false),
            handed_on_at: Cell::new(0),
            pinned_to: Cell::new(None),
            node: Cell::new(0),
            is_dismissed: Cell::new(false),
            next_idle: Cell::new(std::ptr::null()),
            previous_idle: Cell::new(std::ptr::null()),
            is_among_sleeping: Cell::new(false),
        }));
        SCHEDULER.register(machine);
        machine
    }

    /// Offset of the flag, for one-instruction reads of it and what follows.
    pub(crate) const IN_RUNTIME: usize = offset_of!(Machine, in_runtime);

    /// Offset of the current goroutine, for one-instruction reads.
    pub(crate) const CURRENT: usize = offset_of!(Machine, current);

    /// Binds the calling thread to this machine.
    pub(crate) fn bind(&self) {
        let host = (&raw const self.host).cast_mut();
        // SAFETY: the record is never freed, and this thread has no host: it is a plain one that
        // becomes a machine now, for good.
        unsafe { host::bind(host) };
        self.mask.set(crate::start::machine_mask());
        let tid = os::gettid();
        self.eyes.turn_to(tid);
        // ORDERING: Relaxed; for dumps.
        self.tid.store(tid as u32, Relaxed);
        // From here on others may rely on it: it may take an idle processor, or the poller's place.
        history::machine(Kind::Awake, self, 0);
    }

    /// Makes the calling thread, whose life as this machine is over, a plain one.
    pub(crate) fn unbind(&self) {
        // SAFETY: bound by `bind`; the scheduler's stack is the thread's own, and so is its block.
        unsafe { host::unbind() };
    }

    /// Makes a thread for it. By the starter.
    pub(crate) fn start_thread(&'static self, stack_bytes: usize) -> io::Result<()> {
        self.signal_stack.set(Some(SignalStack::take()?));
        let started = thread::start(self, Some(stack_bytes));
        if started.is_err() {
            self.signal_stack.take();
        }
        started
    }

    /// The system's tools call it `gosched-m` and its number.
    fn name_thread(&self) {
        let mut name = *b"gosched-m\0\0\0\0\0\0\0";
        let mut rest = &mut name[..15];
        rest = &mut rest[b"gosched-m".len()..];
        let _ = write!(rest, "{}", self.id);
        if let Ok(name) = CStr::from_bytes_until_nul(&name) {
            thread::set_name(name);
        }
    }

    /// Makes the record fit for another thread. The last owner's last act but one.
    fn retire(&self) {
        {
            let _one_revoker = REVOKER.lock();
            self.eyes.close();
        }
        self.locked.set(None);
        self.lock_depth.set(0);
        self.unwinds.set(false);
        self.has_own_mask.set(false);
        self.hides_urgent.set(false);
        self.is_ending.set(false);
    }

    /// Ends what [`Inside::leave_hidden`] began, on the same thread.
    pub(crate) fn show(&self) {
        // SAFETY: hidden by `leave_hidden`; nothing moves a caller that has no machine.
        unsafe { host::show(self.host()) };
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Whether its thread is the process's first, which can't end before the process.
    pub(crate) fn is_process_main(&self) -> bool {
        self.tid() as i32 == os::getpid()
    }

    pub(crate) fn own_block(&self) -> usize {
        self.host.own_block()
    }

    pub(crate) fn tid(&self) -> u32 {
        // ORDERING: Relaxed; for dumps.
        self.tid.load(Relaxed)
    }

    /// L1 to L3 of `Ownership`.
    #[inline(always)]
    fn out(&self) {
        history::machine(Kind::Left, self, 0);
        // ORDERING: Relaxed, and the fence for the compiler: both are read by this thread's signal
        // handlers, and by the monitor after it has seen the thread asleep. Release pairs with
        // `progress`: who takes the processor then sees what was done with it.
        self.leaves.store(self.leaves.load(Relaxed).wrapping_add(1), Relaxed);
        compiler_fence(Release);
        self.in_runtime.store(0, Release);
    }

    /// Says that the next SIGURG on this thread is ours, and what for.
    pub(crate) fn ask_to_preempt(&self, how: Asked) {
        // ORDERING: Relaxed; the signal comes after it.
        self.preempt_asked.fetch_or(how as u8, Relaxed);
    }

    /// Whether it was asked to end a blocked call and has not answered yet.
    pub(crate) fn is_forced_asked(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.preempt_asked.load(Relaxed) & Asked::Forced as u8 != 0
    }

    /// Whether a SIGURG is ours, and what for; forgotten by asking.
    pub(crate) fn take_preempt_asked(&self) -> Option<Asked> {
        // ORDERING: Relaxed; as above.
        match self.preempt_asked.swap(0, Relaxed) {
            0 => None,
            bits if bits & Asked::Forced as u8 != 0 => Some(Asked::Forced),
            _ => Some(Asked::Computing),
        }
    }

    /// A handler on this thread enters the runtime; false if the code it interrupted is inside.
    pub(crate) fn enter_in_signal(&self) -> bool {
        // ORDERING: Relaxed, and the fence for the compiler: E1 and E2 of `Ownership`, on the
        // thread's own account.
        if self.in_runtime.load(Relaxed) != 0 {
            return false;
        }
        self.in_runtime.store(1, Relaxed);
        compiler_fence(Acquire);
        true
    }

    /// Undoes `enter_in_signal`: a leave that does not count.
    pub(crate) fn leave_in_signal(&self) {
        // ORDERING: a fence for the compiler, and Release; as in `out`.
        compiler_fence(Release);
        self.in_runtime.store(0, Release);
    }

    /// Ends `enter_in_signal` after the machine has had other processors: a leave like any other,
    /// but requests are looked at later.
    pub(crate) fn leave_thawed(&self) {
        self.out();
    }

    /// How often it has left the runtime. For the monitor.
    pub(crate) fn leaves(&self) -> u32 {
        // ORDERING: Relaxed; a hint.
        self.leaves.load(Relaxed)
    }

    /// How often it has left the runtime, and whether it is outside now. For the monitor.
    pub(crate) fn progress(&self) -> Option<u32> {
        // ORDERING: Acquire for both: R3 of `Ownership` reads them in this order, and the second
        // pairs with `out`.
        let leaves = self.leaves.load(Acquire);
        (self.in_runtime.load(Acquire) == 0).then_some(leaves)
    }

    /// The processor it holds.
    #[inline]
    pub(crate) fn processor(&self) -> Option<&'static Processor> {
        // ORDERING: Relaxed; its own thread wrote it.
        let p = self.processor.load(Relaxed);
        // SAFETY: processors are never freed.
        unsafe { p.as_ref() }
    }

    /// The processor it holds, by I1.
    #[inline]
    pub(crate) fn expect_processor(&self) -> &'static Processor {
        match self.processor() {
            Some(p) => p,
            None => rt_abort!("m{}: scheduler code without a processor", self.id),
        }
    }

    pub(crate) fn set_processor(&self, p: Option<&'static Processor>) {
        let p = p.map_or(std::ptr::null(), |p| p as *const Processor);
        // ORDERING: Relaxed; read by others as a hint only.
        self.processor.store(p.cast_mut(), Relaxed);
    }

    /// Gives the processor `p`, which it holds, out of its hands.
    pub(crate) fn part_with(&self, p: &Processor) {
        if trace::is_on() {
            trace::released(self, p);
        }
        self.set_processor(None);
    }

    /// The goroutine that runs on it.
    #[inline]
    pub(crate) fn current(&self) -> Option<GRef> {
        // ORDERING: Relaxed; its own thread wrote it, others take it as a hint.
        let g = self.current.load(Relaxed);
        // SAFETY: only `set_current` stores here, addresses of descriptors.
        std::ptr::NonNull::new(g).map(|g| unsafe { GRef::new(g.cast()) })
    }

    #[inline]
    pub(crate) fn set_current(&self, g: Option<GRef>) {
        let g = g.map_or(std::ptr::null_mut(), |g| g.as_ptr().cast());
        // ORDERING: Relaxed; see `current`.
        self.current.store(g, Relaxed);
    }

    /// Gives a processor to a machine that sleeps or is about to start, and wakes it.
    pub(crate) fn hand_over(&self, p: &'static Processor) {
        // ORDERING: Release pairs with `take_handed`; the parker's edge would do as well.
        self.handed.store((p as *const Processor).cast_mut(), Release);
        self.parker.wake();
    }

    pub(crate) fn take_handed(&self) -> Option<&'static Processor> {
        // ORDERING: Acquire pairs with `hand_over`.
        let p = self.handed.swap(std::ptr::null_mut(), Acquire);
        // SAFETY: processors are never freed.
        unsafe { p.as_ref() }
    }
}

/// The proof of being inside the runtime, and where: on which machine.
///
/// It can't outlive a switch: whoever resumes gets a new one.
#[derive(Debug)]
pub(crate) struct Inside {
    machine: *const Machine,
    not_send: PhantomData<*const ()>,
}

impl Inside {
    /// Enters the runtime, from a goroutine; `None` on a plain thread.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Inside> {
        // SAFETY: every host of this process is a `Machine`, with the flag at that offset.
        let host = unsafe { host::mark_current::<{ Machine::IN_RUNTIME }>() };
        // ORDERING: a fence for the compiler: E2 of `Ownership`.
        compiler_fence(Acquire);
        if host.is_null() {
            return None;
        }
        let inside = Inside { machine: host.cast(), not_send: PhantomData };
        if !inside.machine().ownership.is_undisturbed() {
            return Some(crate::blocking::settle_ownership(inside));
        }
        Some(inside)
    }

    /// As [`enter`](Inside::enter), from code that only goroutines run.
    #[inline(always)]
    pub(crate) fn enter_on_goroutine() -> Inside {
        match Inside::enter() {
            Some(inside) => inside,
            None => rt_abort!("a goroutine's code ran on a plain thread"),
        }
    }

    /// For code that is inside already: the scheduler's stack, or the resumed side of a switch.
    ///
    /// # Safety
    /// * The calling code runs on `machine`, whose `in_runtime` is 1.
    #[inline(always)]
    pub(crate) unsafe fn assume(machine: *const Machine) -> Inside {
        Inside { machine, not_send: PhantomData }
    }

    /// As [`assume`](Inside::assume), for code that does not know its machine: a commit.
    ///
    /// # Safety
    /// * The calling code runs inside the runtime.
    #[inline(always)]
    pub(crate) unsafe fn of_commit() -> Inside {
        // SAFETY: by the caller; every host is a machine.
        unsafe { Inside::assume(host::current_on_host().cast()) }
    }

    #[inline(always)]
    pub(crate) fn machine(&self) -> &'static Machine {
        // SAFETY: machines are never freed.
        unsafe { &*self.machine }
    }

    #[inline(always)]
    pub(crate) fn processor(&self) -> &'static Processor {
        self.machine().expect_processor()
    }

    /// Leaves the runtime; yields first if somebody asked for it.
    #[inline(always)]
    pub(crate) fn leave(self) {
        let mut inside = self;
        // Whoever left in between may be on another machine by now.
        // ORDERING: Relaxed; its own thread wrote it.
        if cfg!(debug_assertions) && inside.machine().in_runtime.load(Relaxed) == 0 {
            rt_abort!("m{}: leaves the runtime twice", inside.machine().id);
        }
        // ORDERING: Relaxed; a request that comes now is seen at the next leave.
        if inside.processor().attention.load(Relaxed) != 0 {
            inside = crate::attention::attend(inside);
        }
        inside.machine().out();
    }

    /// Leaves the runtime without looking at requests, and hides the machine from its thread; until
    /// [`Machine::show`] nothing can stop or move the caller.
    pub(crate) fn leave_hidden(self) -> &'static Machine {
        let machine = self.machine();
        // SAFETY: inside the runtime the caller can't be moved; `show` is the caller's next act.
        unsafe { host::hide(machine.host()) };
        machine.out();
        machine
    }

    /// Leaves the runtime for a declared call, which has begun.
    pub(crate) fn leave_for_call(self) {
        let machine = self.machine();
        machine.out();
    }
}

/// A machine's thread. Made by the starter.
impl Body for Machine {
    fn run(&'static self) {
        SCHEDULER.machine_started();
        self.name_thread();
        // Before a signal can come. A filter may refuse it: then overflows have no report.
        let alternate_stack = self.signal_stack.take().map(SignalStack::install);
        crate::start::restore_signals();
        self.bind();
        crate::idle::take_processor_to_search(self);
        fleet::born();
        run_bound_machine();
        history::machine(Kind::Sleep, self, 0);
        self.lane.flush(u64::MAX);
        self.unbind();
        self.retire();
        fleet::machine_ended(self);
        drop(alternate_stack);
        SCHEDULER.machine_ended();
    }
}

/// The life of a thread that is bound to a machine, from here on. Returns if the thread must end.
pub(crate) fn run_bound_machine() {
    match Inside::enter() {
        Some(inside) => crate::find::schedule(&inside),
        None => rt_abort!("a plain thread can't run goroutines"),
    }
}
