//! Asynchronous preemption: a goroutine is stopped between any two instructions.
//!
//! The monitor asks for it: it marks the machine and sends SIGURG to its thread. The handler
//! decides, in this order:
//!
//! 0. A system call about to be restarted by the kernel fails with EINTR instead.
//! 1. Inside the runtime or on the scheduler's stack: the request becomes a flag.
//! 2. In a user's signal handler (the signal mask differs from the machine's): not now. Resumed on
//!    another thread it would swap masks and alternate stacks between the two. After some tries in
//!    a row as 6.
//! 3. The goroutine forbids it for the moment: a flag.
//! 4. In libc, the loader or the unwinder: not now; their locks are everybody's. The monitor
//!    tries again. (Unless a blocked call is to be ended, the last resort: then only in the call.)
//! 5. On a stack of ours with room: the code is sent to the trampoline, which parks the goroutine.
//! 6. Anywhere else, and with shared thread-locals (allocators' caches and borrowed thread-locals
//!    would be re-entered by the next goroutine): it is frozen with its thread, see `freeze`.
//!
//! What user code sees of it
//!
//! A goroutine is signalled while it computes. On its way into a system call it may be hit all the
//! same, and as the last resort blocked calls are ended by force (see `interrupt`). Then the call
//! behaves as with any handler that was installed with SA_RESTART (signal(7)):
//!
//! | call | what is seen |
//! | --- | --- |
//! | read, write, accept, connect, recv, send, open, flock, wait | nothing: the kernel restarts it |
//! | futex without a time-out, semaphores, mutexes | nothing |
//! | `std::thread::sleep`, std's and gosched's locks and sleeps | nothing: they sleep on |
//! | write or send of much at once | fewer bytes than asked for, as always possible |
//! | nanosleep, poll, ppoll, select, epoll_wait, futex or semaphore with a time-out | EINTR |
//! | recv, send, accept with SO_RCVTIMEO or SO_SNDTIMEO | EINTR |
//! | read of inotify; msgrcv, semop, io_getevents, pause, sigsuspend | EINTR |
//!
//! No sleep ends early with success: what the kernel keeps for a restart belongs to a thread, and is
//! never carried to another one (step 0).
//!
//! Signal safety: everything called from [`handle`] is listed in this file's imports and neither
//! allocates, locks, formats nor uses thread-locals.

use crate::attention::{STOP, URGENT};
use crate::counters::Count;
use crate::goroutine::GRef;
use crate::machine::{Asked, Inside, Machine};
use crate::scheduler::SCHEDULER;
use crate::{blocking, fleet, freeze, idle, interpose, signal_mask, trace, yields};
use gosched_base::Lock;
use gosched_base::os::{self, Errno};
use gosched_fiber::arch::preempt::{self, Interrupted};
use gosched_fiber::{host, stack};
use gosched_protocol::Status;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether code can and may be stopped.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Executable parts of libc, the loader and the unwinder: start and end.
static AVOIDED: [[AtomicUsize; 2]; 8] = [const { [const { AtomicUsize::new(0) }; 2] }; 8];
/// Whose SIGURG it is when it is none of ours.
static PREVIOUS: Lock<Option<libc::sigaction>> = Lock::new(None);
/// The same for the handler: the address, with the top bit if it takes three arguments.
static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(0);
const TAKES_INFO: usize = 1 << (usize::BITS - 1);

/// What the handler decided, counted.
pub(crate) struct Counts {
    pub(crate) in_place: Count,
    pub(crate) flagged: Count,
    pub(crate) in_user_handler: Count,
    pub(crate) in_libc: Count,
    pub(crate) elsewhere: Count,
    pub(crate) forced: Count,
    pub(crate) frozen: Count,
    pub(crate) restarts: Count,
}

pub(crate) static COUNTS: Counts = Counts {
    in_place: Count::new(),
    flagged: Count::new(),
    in_user_handler: Count::new(),
    in_libc: Count::new(),
    elsewhere: Count::new(),
    forced: Count::new(),
    frozen: Count::new(),
    restarts: Count::new(),
};

/// Whether goroutines can be stopped by signal.
#[inline]
pub(crate) fn is_on() -> bool {
    // ORDERING: Relaxed; set once at the start.
    IS_ON.load(Relaxed)
}

/// Installs the handler. Once, at the start.
pub(crate) fn install() {
    if !host::is_found_through_gs() || !preempt::init(park_preempted) {
        return;
    }
    find_avoided();
    // SAFETY: all-zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_mask = all_but_faults();
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    let mut previous = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: both actions are ours; the handler is async-signal-safe.
    if unsafe { libc::sigaction(libc::SIGURG, &action, previous.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: written by the call above.
    let previous = unsafe { previous.assume_init() };
    set_previous(&mut PREVIOUS.lock(), previous);
    interpose::mark_installed();
    // ORDERING: Relaxed; no signal of ours is sent before.
    IS_ON.store(true, Relaxed);
}

fn set_previous(previous: &mut Option<libc::sigaction>, action: libc::sigaction) {
    *previous = Some(action);
    let takes_info = action.sa_flags & libc::SA_SIGINFO != 0;
    let word = action.sa_sigaction | if takes_info { TAKES_INFO } else { 0 };
    // ORDERING: Relaxed; one word, and code that is not new.
    PREVIOUS_HANDLER.store(word, Relaxed);
}

/// `sigaction` for SIGURG once that is ours: who asks gets what others have installed. `None` for
/// other signals.
///
/// # Safety
/// * As for libc's.
pub(crate) unsafe fn exchange_previous(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> Option<Result<(), Errno>> {
    if signal != libc::SIGURG || !is_on() {
        return None;
    }
    // May be called in a signal handler that has interrupted another call of this.
    let _alone = NoSignals::new();
    let mut previous = PREVIOUS.lock();
    let before = (*previous)?;
    // SAFETY: null or an action, by the caller.
    if let Some(new) = unsafe { new.as_ref() } {
        set_previous(&mut previous, *new);
    }
    // SAFETY: null or a place for one, by the caller.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before;
    }
    Some(Ok(()))
}

/// Every signal blocked for a few instructions, the runtime's own included.
struct NoSignals(u64);

impl NoSignals {
    fn new() -> NoSignals {
        NoSignals(signal_mask::replace(u64::MAX))
    }
}

impl Drop for NoSignals {
    fn drop(&mut self) {
        signal_mask::replace(self.0);
    }
}

/// What is blocked while the handler runs, which may be long for a frozen goroutine: a user's
/// handler would run inside the runtime. libc lets nobody block its own two.
fn all_but_faults() -> libc::sigset_t {
    // SAFETY: an all-zero set is only storage for the call below.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: fills the set, which is ours.
    unsafe { libc::sigfillset(&mut set) };
    for fault in
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS]
    {
        // SAFETY: an initialised set and a signal.
        unsafe { libc::sigdelset(&mut set, fault) };
    }
    set
}

/// Asks the goroutine that runs on `machine` to yield: by the flag, and by a signal.
pub(crate) fn request(machine: &Machine) {
    machine.ask_to_preempt(Asked::Computing);
    let _ = send(machine);
}

/// Ends the system call in which `machine` is blocked, so that others can run on it.
pub(crate) fn force(machine: &Machine) -> Result<(), Errno> {
    machine.ask_to_preempt(Asked::Forced);
    send(machine)
}

/// The signal says by itself that it is ours: the mark in the machine may have been taken by an
/// earlier one. (One that the kernel merges with ours while both wait is lost for the program, as
/// if it had been merged with another of its own.)
fn send(machine: &Machine) -> Result<(), Errno> {
    os::tgsigqueue(machine.tid() as i32, libc::SIGURG, our_word())
}

fn our_word() -> usize {
    (&raw const IS_ON).addr()
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    preempt::forget_alignment_checks();
    let machine = host::current_machine().cast::<Machine>();
    // SAFETY: the second argument of the handler that runs.
    if unsafe { os::queued_word(info) } != Some(our_word()) {
        chain(signal, info, context);
    }
    // SAFETY: hosts of this process are machines, and never freed.
    let Some(machine) = (unsafe { machine.as_ref() }) else { return };
    let Some(asked) = machine.take_preempt_asked() else { return };
    // SAFETY: the third argument of the handler that runs.
    let mut code = unsafe { Interrupted::new(context) };
    if code.forget_restart() {
        COUNTS.restarts.add_shared();
    }
    if !machine.enter_in_signal() {
        COUNTS.flagged.add_shared();
        return;
    }
    match decide(machine, &code, asked) {
        Decision::Stop(count) => {
            machine.refused.set(0);
            count.add_shared();
            machine.was_forced.set(asked == Asked::Forced);
            // SAFETY: `decide` has seen that the stack is the goroutine's and has room; the
            // handler is installed only after `init` returned true. The trampoline runs inside
            // the runtime, as whoever enters it. `info` is the kernel's.
            unsafe { code.redirect(info) };
        }
        Decision::Freeze(g, otherwise) => {
            // SAFETY: the context of a goroutine that runs is its own.
            let context = unsafe { &mut *g.context.get() };
            // For dumps.
            context.note(code.position());
            if freeze::freeze_in_signal(machine, g) {
                machine.refused.set(0);
                COUNTS.frozen.add_shared();
                machine.refused_in_handler.set(0);
                machine.leave_thawed();
            } else {
                otherwise.add_shared();
                give_work_away(machine);
                machine.leave_in_signal();
            }
        }
        Decision::NotNow(count) => {
            count.add_shared();
            give_work_away(machine);
            machine.leave_in_signal();
        }
    }
}

/// So many refusals in a row, some milliseconds, and what waits for this processor goes to the queue
/// of all. Fewer happen again and again to those who allocate all the time, and each time those in
/// the ring would fall behind all that are in that queue.
const TRIES_WITH_WORK: u32 = 32;

/// Whoever can't be stopped may go on for long, and other processors, if there are any, look into
/// this one's queue only when they have nothing of their own.
fn give_work_away(machine: &Machine) {
    // Undisturbed and inside the runtime, the machine keeps its processor until it leaves.
    let is_late = count_up(&machine.refused) >= TRIES_WITH_WORK;
    if !is_late || SCHEDULER.procs() == 1 || !machine.ownership.is_undisturbed() {
        return;
    }
    let Some(p) = machine.processor().filter(|p| !p.ring.is_empty() || !p.urgent.is_empty()) else {
        return;
    };
    // SAFETY: this machine holds `p`; the code that was interrupted was outside the runtime, so it
    // has no reference to the queue.
    SCHEDULER.global.append(unsafe { p.queue() }.drain());
    for g in p.urgent.take_all() {
        SCHEDULER.global.push_front(g);
    }
    idle::wake_one();
}

enum Decision {
    /// In place.
    Stop(&'static Count),
    /// With its thread; counted as the other if that can't be.
    Freeze(GRef, &'static Count),
    NotNow(&'static Count),
}

/// So many refusals in a row inside a user's handler, and the goroutine is frozen there.
const TRIES_IN_HANDLER: u32 = 4;
/// So many in libc, and it is stopped all the same: this is no short section under a lock, but a
/// long computation.
const TRIES_IN_LIBC: u32 = 64;

fn decide(machine: &Machine, code: &Interrupted<'_>, asked: Asked) -> Decision {
    let is_forced = asked == Asked::Forced;
    let Some(g) = machine.current() else { return Decision::NotNow(&COUNTS.elsewhere) };
    let is_running = g.status.get() == Status::Running;
    if code.signal_mask() != machine.mask.get() {
        let must_freeze = count_up(&machine.refused_in_handler) >= TRIES_IN_HANDLER;
        if must_freeze && is_running && !is_forced && !g.is_preemption_off() {
            return Decision::Freeze(g, &COUNTS.in_user_handler);
        }
        return Decision::NotNow(&COUNTS.in_user_handler);
    }
    machine.refused_in_handler.set(0);
    if g.is_preemption_off() && !is_forced {
        g.defer_preemption();
        return Decision::NotNow(&COUNTS.flagged);
    }
    if is_avoided(code.pc()) && !(is_forced && code.is_in_syscall()) {
        let is_long = count_up(&machine.refused_in_libc) >= TRIES_IN_LIBC;
        if !is_long || preempt::is_in_trampoline(code.pc()) {
            return Decision::NotNow(&COUNTS.in_libc);
        }
    }
    machine.refused_in_libc.set(0);
    let is_in_call = g.status.get() == Status::Syscall;
    let can_be_stopped = is_running || (is_forced && is_in_call);
    if !can_be_stopped {
        return Decision::NotNow(&COUNTS.elsewhere);
    }
    if !g.shares_tls() && has_room(code.sp()) {
        return Decision::Stop(if is_forced { &COUNTS.forced } else { &COUNTS.in_place });
    }
    // A blocked thread that is frozen is no more use to others.
    if is_forced {
        return Decision::NotNow(&COUNTS.elsewhere);
    }
    Decision::Freeze(g, &COUNTS.elsewhere)
}

fn count_up(count: &Cell<u32>) -> u32 {
    let n = count.get().saturating_add(1);
    count.set(n);
    n
}

/// Whether `sp` lies in a stack of ours, far enough above its guard.
fn has_room(sp: usize) -> bool {
    stack::slot_of(sp).is_some_and(|slot| {
        !slot.in_guard() && sp - slot.limit() > preempt::stack_bytes_needed() + 4096
    })
}

fn is_avoided(pc: usize) -> bool {
    // ORDERING: Relaxed; written at the start.
    let in_range = |r: &[AtomicUsize; 2]| (r[0].load(Relaxed)..r[1].load(Relaxed)).contains(&pc);
    preempt::is_in_trampoline(pc) || AVOIDED.iter().any(in_range)
}

/// What the trampoline calls, inside the runtime, on the stopped goroutine's stack.
extern "C" fn park_preempted() {
    // SAFETY: the handler has entered the runtime on this machine, and every host is a machine.
    let mut inside = unsafe { Inside::assume(host::current_on_host().cast()) };
    let was_forced = inside.machine().was_forced.take();
    if !inside.machine().ownership.is_undisturbed() {
        inside = blocking::settle_ownership(inside);
    }
    if was_forced {
        // It is blocked, and the processor is for the others.
        return yields::to_global_queue(inside).leave();
    }
    let g = inside.machine().current();
    g.inspect(|g| g.set_stopped(true));
    inside.machine().lane.set_why(trace::WHY_STOPPED);
    let p = inside.processor();
    let must_yield = p.take_yield_asked();
    // ORDERING: Relaxed; what comes with the bits is looked at by the scheduler.
    let inside = if p.attention.load(Relaxed) & (URGENT | STOP) != 0 {
        yields::to_ring_front(inside)
    } else if must_yield {
        end_slice(&inside);
        yields::to_global_queue(inside)
    } else {
        // The goroutine that was meant is not the one that runs now.
        inside.machine().lane.set_why(0);
        inside
    };
    g.inspect(|g| g.set_stopped(false));
    inside.leave();
}

/// The goroutine has used its slice up; it loses the privilege of the next wake.
fn end_slice(inside: &Inside) {
    if let Some(g) = inside.machine().current() {
        g.use_slice_up();
    }
    fleet::slice_is_over(inside.processor());
}

/// A SIGURG that no request of ours explains goes to whoever had it before.
fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // ORDERING: Relaxed; see `set_previous`.
    let word = PREVIOUS_HANDLER.load(Relaxed);
    let (previous, takes_info) = (word & !TAKES_INFO, word & TAKES_INFO != 0);
    if previous == libc::SIG_DFL || previous == libc::SIG_IGN {
        // The default action of SIGURG is to be ignored.
        return;
    }
    if takes_info {
        // SAFETY: installed by its owner with SA_SIGINFO.
        let f: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(previous) };
        f(signal, info, context);
    } else {
        // SAFETY: installed by its owner without SA_SIGINFO.
        let f: extern "C" fn(c_int) = unsafe { std::mem::transmute(previous) };
        f(signal);
    }
}

/// Notes where libc, the loader and the unwinder lie.
fn find_avoided() {
    // SAFETY: the callback takes no data.
    unsafe { libc::dl_iterate_phdr(Some(note_avoided), std::ptr::null_mut()) };
}

/// # Safety
/// * Called by `dl_iterate_phdr`.
unsafe extern "C" fn note_avoided(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut c_void,
) -> c_int {
    const NAMES: [&[u8]; 5] =
        [b"libc.so", b"ld-linux", b"libgcc_s", b"libpthread.so", b"libstdc++.so"];
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: a terminated string for as long as the module is loaded.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_bytes();
    if !NAMES.iter().any(|n| name.windows(n.len()).any(|w| w == *n)) {
        return 0;
    }
    // SAFETY: the record's own table of headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for h in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0) {
        let from = (info.dlpi_addr + h.p_vaddr) as usize;
        add_avoided(from, from + h.p_memsz as usize);
    }
    0
}

fn add_avoided(from: usize, to: usize) {
    for range in &AVOIDED {
        // ORDERING: Relaxed; see `install`.
        if range[1].load(Relaxed) == 0 {
            range[0].store(from, Relaxed);
            range[1].store(to, Relaxed);
            return;
        }
    }
}

/// How often code was stopped in place, and why it was not otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preemptions {
    /// Stopped between two instructions.
    pub in_place: u64,
    /// Inside the runtime or forbidden for the moment: became a flag.
    pub flagged: u64,
    /// Deferred because a user's signal handler ran.
    pub in_user_handler: u64,
    /// Deferred because libc, the loader or the unwinder ran.
    pub in_libc: u64,
    /// Deferred because the stack was not the goroutine's, or too full.
    pub elsewhere: u64,
    /// Blocked calls ended by a signal, so that somebody else could run at all.
    pub forced: u64,
    /// Stopped together with the thread: on another stack, with shared thread-locals, or inside a
    /// user's signal handler.
    pub frozen: u64,
    /// System calls that the kernel was about to restart on this very thread (after the process was
    /// stopped and continued, for instance) and that return EINTR instead: the goroutine may go on
    /// on another thread.
    pub restarts: u64,
}

/// What preemption did so far.
#[must_use]
pub fn preemptions() -> Preemptions {
    Preemptions {
        in_place: COUNTS.in_place.get(),
        flagged: COUNTS.flagged.get(),
        in_user_handler: COUNTS.in_user_handler.get(),
        in_libc: COUNTS.in_libc.get(),
        elsewhere: COUNTS.elsewhere.get(),
        forced: COUNTS.forced.get(),
        frozen: COUNTS.frozen.get(),
        restarts: COUNTS.restarts.get(),
    }
}
