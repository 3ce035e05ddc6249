//! The thread that carries: its own thread-local block, and how code finds it.
//!
//! A machine keeps the address of its [`Host`] in GS, which the kernel saves with the thread and
//! glibc leaves at 0. One gs-relative instruction then reaches the machine that *now* runs the
//! code, whatever block FS holds.
//!
//! GS is 0 on most plain threads, but not on all: a thread that a fiber or a machine creates starts
//! with its creator's GS (`clone` copies it). [`current`] tells them apart: a host has a fiber's
//! block loaded, which lies in a stack's slot, or its own, in which [`bind`] has left the host's
//! address; a new thread has neither. [`current_on_host`] is for code that can only run on a host.
//!
//! Where user code may not read or write GS itself (no FSGSBASE), it still reads through it. Whether
//! there is something to read is then said by a thread-local slot, which [`load_block`] writes into
//! a block before it loads it; and GS, once written, always holds a record, if only [`NOBODY`].
//!
//! Where GS is taken (Wine, some sandboxes), the slot itself is all there is. Nothing may stop code
//! between reading it and using what it says, so there is no preemption by signal.

use crate::arch;
use crate::stack;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// What a thread that carries fibers is known by. The first field of a machine.
#[derive(Debug)]
#[repr(C)]
pub struct Host {
    /// Its own address: `gs:[0]`.
    this: *const Host,
    /// The thread's own block, as libc made it.
    own_block: usize,
    /// The block that a machine has loaded; 0 for a carrier. Written by: its thread, just before
    /// FS. Read by: its thread.
    loaded: AtomicUsize,
    /// Whether this is a [`Carrier`](crate::Carrier)'s, and not a machine's.
    is_carrier: bool,
}

impl Host {
    /// Not yet bound to a thread.
    #[must_use]
    pub const fn unbound() -> Host {
        Host {
            this: std::ptr::null(),
            own_block: 0,
            loaded: AtomicUsize::new(0),
            is_carrier: false,
        }
    }

    /// As [`unbound`](Host::unbound), for a carrier of coroutines.
    pub(crate) const fn unbound_carrier() -> Host {
        Host { this: std::ptr::null(), own_block: 0, loaded: AtomicUsize::new(0), is_carrier: true }
    }

    /// Whether it is a carrier's.
    pub(crate) fn is_carrier(&self) -> bool {
        self.is_carrier
    }

    /// The thread's own block.
    #[inline]
    #[must_use]
    pub fn own_block(&self) -> usize {
        self.own_block
    }
}

/// What GS holds on a thread that has no host any more, or hides it, where only a system call could
/// tell that GS is 0.
static NOBODY: Nobody = Nobody(Host::unbound());

struct Nobody(Host);

// SAFETY: nothing in it is ever written.
unsafe impl Sync for Nobody {}

/// Whether FS and GS are read and written by instructions (else by system calls).
static INSTRUCTIONS: AtomicBool = AtomicBool::new(false);
/// By instructions, and hosts are found through GS: no slot is needed.
static DIRECT: AtomicBool = AtomicBool::new(false);
/// Whether hosts are found through GS (else through [`SLOT`]).
static THROUGH_GS: AtomicBool = AtomicBool::new(false);
/// Offset of [`SLOT`] from FS; 0 until known.
static SLOT_OFFSET: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static SLOT: Cell<*const Host> = const { Cell::new(std::ptr::null()) };
}

/// How thread registers are accessed; decided once by [`init`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `wrfsbase` and its kin (Linux 5.9 and a CPU of this decade).
    Instructions,
    /// `arch_prctl`, about 100 ns each time.
    SystemCalls,
    /// As the machine allows, and hosts are found through the slot, as where GS is taken.
    Slot,
}

/// Decides how FS and GS are accessed: as asked, or as the machine allows.
///
/// Call before the first [`bind`], once.
pub fn init(wanted: Option<Access>) -> Access {
    let has_instructions = arch::has_fsgsbase() && wanted != Some(Access::SystemCalls);
    // ORDERING: Relaxed for all of these: they are set before the first fiber or machine exists,
    // and creating those synchronises.
    INSTRUCTIONS.store(has_instructions, Relaxed);
    let gs_is_free = wanted != Some(Access::Slot) && arch::gs_base_by_syscall() == 0;
    THROUGH_GS.store(gs_is_free, Relaxed);
    DIRECT.store(has_instructions && gs_is_free, Relaxed);
    let access = match (has_instructions, gs_is_free) {
        (true, true) => Access::Instructions,
        (false, true) => Access::SystemCalls,
        (_, false) => Access::Slot,
    };
    SLOT_OFFSET.store(slot_offset(), Relaxed);
    // SAFETY: the function is made for this. It fails only without memory; see there.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    access
}

/// Whether [`load_block`] works on blocks with `below_fs` bytes of static thread-locals: where the
/// slot is needed, it must be among those (it is not when this crate is in a library
/// that was loaded late).
pub(crate) fn can_load_blocks(below_fs: usize) -> bool {
    // ORDERING: Relaxed; see `init`.
    let offset = SLOT_OFFSET.load(Relaxed);
    !needs_slot() || (offset < 0 && offset.unsigned_abs() <= below_fs)
}

/// Whether each block that is loaded needs the host's address in its slot.
#[inline]
#[must_use]
pub fn needs_slot() -> bool {
    // ORDERING: Relaxed; see `init`.
    !DIRECT.load(Relaxed)
}

/// Whether hosts are found through GS; false means through a slot in each block.
#[must_use]
pub fn is_found_through_gs() -> bool {
    // ORDERING: Relaxed; see `init`.
    THROUGH_GS.load(Relaxed)
}

/// FS of the calling code.
#[inline]
#[must_use]
pub fn current_block() -> usize {
    // ORDERING: Relaxed; see `init`.
    if INSTRUCTIONS.load(Relaxed) {
        // SAFETY: INSTRUCTIONS says that the instruction exists.
        unsafe { arch::fs_base() }
    } else {
        arch::fs_base_by_block()
    }
}

/// Loads the block at `tcb`.
///
/// # Safety
/// * `tcb` is a complete block, right for the code that runs next, and no other thread has it
///   loaded.
/// * The caller runs on the host `host` and touches no thread-local between here and the switch.
#[inline(always)]
pub unsafe fn load_block(host: *const Host, tcb: usize) {
    // ORDERING: Relaxed; see `init`.
    if DIRECT.load(Relaxed) {
        // SAFETY: DIRECT implies that the instruction exists; the block is the caller's promise.
        unsafe { arch::set_fs_base(tcb) };
    } else {
        // SAFETY: by the caller.
        unsafe { load_block_with_slot(host, tcb) };
    }
}

/// As [`load_block`], on a machine, which notes what it loads.
///
/// # Safety
/// * As for [`load_block`]; `host` is a machine's.
#[inline(always)]
pub unsafe fn load_block_on_machine(host: &Host, tcb: usize) {
    // ORDERING: Relaxed; only this thread reads it. Between the store and FS the code counts as
    // that of a plain thread, for signal handlers.
    host.loaded.store(tcb, Relaxed);
    // SAFETY: by the caller.
    unsafe { load_block(host, tcb) };
}

/// # Safety
/// * As for [`load_block`].
#[cold]
unsafe fn load_block_with_slot(host: *const Host, tcb: usize) {
    // ORDERING: Relaxed for both; see `init`.
    let slot = tcb.wrapping_add_signed(SLOT_OFFSET.load(Relaxed)) as *mut *const Host;
    // SAFETY: the slot's place in the static area of a complete block that nobody has loaded.
    unsafe { slot.write(host) };
    if INSTRUCTIONS.load(Relaxed) {
        // SAFETY: the instruction exists; the block is the caller's promise.
        unsafe { arch::set_fs_base(tcb) };
    } else {
        // SAFETY: by the caller.
        unsafe { arch::set_fs_base_by_syscall(tcb) };
    }
}

/// What GS holds, where hosts are found through GS and no instruction says: a host's address,
/// perhaps that of the thread that created this one, or 0.
#[cold]
fn gs_by_reading() -> usize {
    if current_from_slot().is_null() {
        return 0;
    }
    const THIS: usize = std::mem::offset_of!(Host, this);
    // SAFETY: the slot is written on threads with a host only, which have a record in GS for good.
    unsafe { arch::load_gs::<THIS>() }
}

/// The host that runs the calling code; null on a plain thread. May be called in a signal handler.
///
/// After any switch the answer may be another: don't keep it across one.
#[inline]
#[must_use]
pub fn current() -> *const Host {
    let host = current_on_host();
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) && !gs_is_own(host as usize) {
        return std::ptr::null();
    }
    host
}

/// Whether `gs`, which GS holds, names this thread's own host. False on plain threads.
///
/// For code on a host the answer never changes, wherever the code is stopped and moved.
#[inline(always)]
fn gs_is_own(gs: usize) -> bool {
    gs != 0 && (stack::is_in_slot(current_block()) || current_from_slot() as usize == gs)
}

/// The machine that runs the calling code; null on a plain thread and on a carrier. May be called in
/// a signal handler.
#[inline(always)]
#[must_use]
pub fn current_machine() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if !DIRECT.load(Relaxed) {
        return current_machine_indirect();
    }
    // SAFETY: DIRECT implies that the instruction exists.
    if unsafe { is_on_machine() } { current_on_host() } else { std::ptr::null() }
}

#[cold]
fn current_machine_indirect() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if !THROUGH_GS.load(Relaxed) {
        return machine_from_slot();
    }
    if is_on_machine_indirect() { gs_by_reading() as *const Host } else { std::ptr::null() }
}

/// Whether GS names the machine that runs this code: it has loaded the block that FS holds.
///
/// A thread that was created by a goroutine has its creator's GS, but a block of its own. Between
/// the two reads the code may be moved; the machine that it goes on has loaded the same block.
///
/// # Safety
/// * DIRECT.
#[inline(always)]
unsafe fn is_on_machine() -> bool {
    const LOADED: usize = std::mem::offset_of!(Host, loaded);
    // SAFETY: DIRECT implies that the instruction exists.
    if unsafe { arch::gs_base() } == 0 {
        return false;
    }
    // SAFETY: as above.
    let block = unsafe { arch::fs_base() };
    // SAFETY: GS is a host's record: this thread's or its creator's, and machines' are never freed;
    // a carrier's creator outlives the threads that use it.
    block == unsafe { arch::load_gs::<LOADED>() }
}

/// As [`is_on_machine`], where hosts are found through GS and no instruction reads it.
fn is_on_machine_indirect() -> bool {
    const LOADED: usize = std::mem::offset_of!(Host, loaded);
    // SAFETY: as in `is_on_machine`; the first check says that GS is a record at all.
    gs_by_reading() != 0 && current_block() == unsafe { arch::load_gs::<LOADED>() }
}

fn machine_from_slot() -> *const Host {
    let host = current_from_slot();
    // SAFETY: a bound host is alive.
    let is_machine = unsafe { host.as_ref() }.is_some_and(|host| !host.is_carrier);
    if is_machine { host } else { std::ptr::null() }
}

/// As [`current`], for code that runs on a host or on a thread that never saw one.
#[inline(always)]
#[must_use]
pub fn current_on_host() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if DIRECT.load(Relaxed) {
        // SAFETY: DIRECT implies that the instruction exists.
        unsafe { arch::gs_base() as *const Host }
    } else {
        current_on_host_indirect()
    }
}

#[cold]
fn current_on_host_indirect() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) { gs_by_reading() as *const Host } else { current_from_slot() }
}

/// As [`current_machine`], and on a machine sets the `u32` at `OFFSET` in its record to 1 first, by one
/// instruction: the record that is marked is the one that is returned, wherever the code is
/// stopped. (Through the slot that takes two instructions; nothing may stop code in that mode.)
///
/// # Safety
/// * Every machine's record has an `AtomicU32` at `OFFSET`.
#[inline(always)]
#[must_use]
pub unsafe fn mark_current<const OFFSET: usize>() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if !DIRECT.load(Relaxed) {
        // SAFETY: by the caller.
        return unsafe { mark_current_indirect::<OFFSET>() };
    }
    // SAFETY: DIRECT implies that the instruction exists.
    if !unsafe { is_on_machine() } {
        return std::ptr::null();
    }
    // SAFETY: GS is a machine's record, by the caller with a u32 at the offset.
    unsafe { arch::mark_gs::<OFFSET>() as *const Host }
}

/// The word at `OFFSET` in the current machine's record, read by one instruction; 0 where there is
/// none.
///
/// Where code may be stopped and moved between two instructions, this is the only right way to
/// read what belongs to the code that runs, such as the current goroutine.
///
/// # Safety
/// * Every machine's record has an `AtomicPtr` or `AtomicUsize` at `OFFSET`.
#[inline(always)]
#[must_use]
pub unsafe fn current_word<const OFFSET: usize>() -> usize {
    // ORDERING: Relaxed; see `init`.
    if !DIRECT.load(Relaxed) {
        // SAFETY: by the caller.
        return unsafe { current_word_indirect::<OFFSET>() };
    }
    // SAFETY: DIRECT implies that the instruction exists.
    if !unsafe { is_on_machine() } {
        return 0;
    }
    // SAFETY: GS is a machine's record, by the caller with a word at the offset.
    unsafe { arch::load_gs::<OFFSET>() }
}

/// # Safety
/// * As for [`current_word`].
#[cold]
unsafe fn current_word_indirect<const OFFSET: usize>() -> usize {
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) {
        // SAFETY: GS is a machine's record, by the caller with a word at the offset.
        return if is_on_machine_indirect() { unsafe { arch::load_gs::<OFFSET>() } } else { 0 };
    }
    let host = machine_from_slot();
    if host.is_null() {
        return 0;
    }
    let word = host.cast::<AtomicUsize>().wrapping_byte_add(OFFSET);
    // SAFETY: by the caller.
    let word = unsafe { &*word };
    // ORDERING: Relaxed; written by this thread.
    word.load(Relaxed)
}

/// # Safety
/// * As for [`mark_current`].
#[cold]
unsafe fn mark_current_indirect<const OFFSET: usize>() -> *const Host {
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) {
        if !is_on_machine_indirect() {
            return std::ptr::null();
        }
        // SAFETY: GS is a machine's record, by the caller with a u32 at the offset.
        return unsafe { arch::mark_gs::<OFFSET>() as *const Host };
    }
    let host = machine_from_slot();
    if !host.is_null() {
        let word = host.cast::<AtomicU32>().wrapping_byte_add(OFFSET);
        // SAFETY: by the caller.
        let word = unsafe { &*word };
        // ORDERING: Relaxed; read by this thread's own signal handlers.
        word.store(1, Relaxed);
    }
    host
}

/// Not inlined: the compiler must not keep the slot's address across a switch.
#[inline(never)]
fn current_from_slot() -> *const Host {
    SLOT.with(Cell::get)
}

/// Runs `f`, which may bring the thread-locals of the block at `tcb` back to their first values,
/// and keeps the slot: the block may be the one that is loaded.
///
/// # Safety
/// * `tcb` is a complete block, which nobody uses but, perhaps, the caller.
#[inline]
pub(crate) unsafe fn keeping_slot(tcb: usize, f: impl FnOnce()) {
    // ORDERING: Relaxed; see `init`.
    if !needs_slot() {
        return f();
    }
    let slot = tcb.wrapping_add_signed(SLOT_OFFSET.load(Relaxed)) as *mut *const Host;
    // SAFETY: the slot's place in the static area of a complete block.
    let host = unsafe { slot.read() };
    f();
    // SAFETY: as above.
    unsafe { slot.write(host) };
}

/// Makes the calling thread the host `host`, with the block that is loaded now as its own.
///
/// # Safety
/// * `host` stays in place until [`unbind`] on the same thread.
/// * The thread is a plain one and has no host yet.
pub unsafe fn bind(host: *mut Host) {
    // SAFETY: the caller gives the record, which nobody else uses yet.
    let record = unsafe { &mut *host };
    record.this = host;
    record.own_block = current_block();
    if !current().is_null() {
        gosched_base::rt_abort!("host: GS of this thread is in use, or it was bound before");
    }
    if !record.is_carrier {
        // ORDERING: Relaxed; only this thread reads it.
        record.loaded.store(record.own_block, Relaxed);
    }
    // SAFETY: the thread is the caller's, and nobody uses its GS.
    unsafe { set_current(host) };
}

/// Makes the calling thread a plain one again.
///
/// # Safety
/// * The thread was bound, runs on its own stack and block, and carries nothing.
pub unsafe fn unbind() {
    // SAFETY: by the caller.
    unsafe { set_current(std::ptr::null()) };
}

/// # Safety
/// * GS, or the slot, is this module's to write on this thread.
unsafe fn set_current(host: *const Host) {
    SLOT.with(|slot| slot.set(host));
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) {
        // SAFETY: GS mode implies that GS is free; the thread is the caller's.
        unsafe { set_gs(host) };
    }
}

/// Writes GS; null where there is no host.
///
/// # Safety
/// * GS is this module's to write on this thread.
unsafe fn set_gs(host: *const Host) {
    // ORDERING: Relaxed; see `init`.
    if INSTRUCTIONS.load(Relaxed) {
        // SAFETY: INSTRUCTIONS says that the instruction exists; GS is ours by the caller.
        unsafe { arch::set_gs_base(host as usize) };
        return;
    }
    let record = if host.is_null() { &raw const NOBODY.0 } else { host };
    // SAFETY: by the caller.
    unsafe { arch::set_gs_base_by_syscall(record as usize) };
}

/// In the child of a `fork` on a fiber the fiber's block is the one that libc has in its list; the
/// host's own is not there any more. So the thread becomes a plain one with that block, and
/// set*id calls of other threads of the child find it. It carries nothing again.
extern "C" fn after_fork_in_child() {
    let host = current();
    if host.is_null() {
        return;
    }
    // SAFETY: a bound host is valid.
    let own = unsafe { (*host).own_block };
    if own != current_block() {
        // SAFETY: this thread's own; what it carried runs for good.
        unsafe { set_current(std::ptr::null()) };
    }
}

/// Hides the host from the calling thread until [`show`]: a thread that is created meanwhile does
/// not inherit it. (The kernel copies GS to new threads.) Between the two the caller is a plain
/// thread to everybody, signal handlers included.
///
/// # Safety
/// * The caller runs on `host`, can't be moved to another thread before this returns, and calls
///   [`show`] on the same thread.
pub unsafe fn hide(host: *const Host) {
    debug_assert_eq!(current(), host);
    // ORDERING: Relaxed; see `init`. A slot is zero in every new thread.
    if THROUGH_GS.load(Relaxed) {
        // SAFETY: GS mode implies that GS is ours on this thread.
        unsafe { set_gs(std::ptr::null()) };
    }
}

/// Undoes [`hide`].
///
/// # Safety
/// * `host` was hidden on this thread.
pub unsafe fn show(host: *const Host) {
    // ORDERING: Relaxed; see `init`.
    if THROUGH_GS.load(Relaxed) {
        // SAFETY: as in `hide`.
        unsafe { set_gs(host) };
    }
}

/// Calls `act(data)` with the host's own block, hidden also where hosts are found through a slot: to
/// the code it calls the thread is a plain one.
///
/// Not inlined, and `act` is called through a pointer that the compiler knows nothing of: addresses
/// of thread-locals must not be kept across the change of blocks.
///
/// # Safety
/// * The caller runs on `host`, and is between [`hide`] and [`show`]: nothing moves it.
/// * `act` is sound with `data`, and does not unwind.
#[inline(never)]
pub unsafe fn call_as_thread(host: &Host, act: unsafe fn(*mut ()), data: *mut ()) {
    let loaded = current_block();
    // SAFETY: this thread's own block, which nobody else loads; no thread-local is touched here.
    unsafe { load_block(host, host.own_block) };
    SLOT.with(|slot| slot.set(std::ptr::null()));
    let act = std::hint::black_box(act);
    // SAFETY: by the caller.
    unsafe { act(data) };
    SLOT.with(|slot| slot.set(host));
    // SAFETY: what was loaded before.
    unsafe { load_block(host, loaded) };
}

/// Runs `f` with the host's own block loaded, for a handler of libc's that looks for the thread.
pub(crate) fn with_own_block_in_signal(f: impl FnOnce()) {
    let host = current();
    if host.is_null() {
        return f();
    }
    let loaded = current_block();
    // SAFETY: a bound host is valid.
    let own = unsafe { (*host).own_block };
    if loaded == own {
        return f();
    }
    // SAFETY: the thread's own block, on that thread; a signal handler touches no thread-local of
    // the code that it interrupted.
    unsafe { load_block(host, own) };
    f();
    // SAFETY: what was loaded when the signal came.
    unsafe { load_block(host, loaded) };
}

fn slot_offset() -> isize {
    SLOT.with(|slot| slot.as_ptr() as isize) - current_block() as isize
}
