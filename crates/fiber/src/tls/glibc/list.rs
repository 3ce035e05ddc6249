//! Our blocks' place in glibc's list of threads.
//!
//! glibc walks the list in `dlopen` (static thread-locals of new libraries), `dlclose`, `fork`
//! and the set*id family; debuggers walk it too. The list's lock is private. But glibc inserts
//! only at the head and removes only nodes of threads that end by its own hand, so what lies
//! between two nodes that never leave (the template's dead threads) is ours alone.
//!
//! Invariants
//! * I1. Between `Ends::first` and `Ends::second` only this file writes, under [`LIST`].
//! * I2. A walker that reads `next` at any moment gets on and arrives at the second end: a node's
//!   own pointers are written before the node is linked, and stay valid after it is unlinked until
//!   [`wait_for_walkers`] has returned.
//!
//! glibc's walkers hold its lock of stacks (`_dl_stack_cache_lock`) from their first step to their
//! last, and so does `pthread_create` while it puts the new thread into the list. Its place is
//! private even to the debuggers' tables, so we can't take it; but creating a thread waits for
//! every walk in progress, which is what a grace period is.

use super::Area;
use super::template::Ends;
use gosched_base::Lock;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Release};
use std::sync::{Mutex, PoisonError};

pub(super) static LIST: Lock<()> = Lock::new(());

/// Node layout: `list_t { next, prev }`.
const NEXT: usize = 0;
const PREV: usize = 8;

/// Puts `node` behind the first end.
///
/// # Safety
/// * `node` is the list node of a complete block that is not in the list.
/// * `ends` are the template's.
pub(super) unsafe fn link(ends: Ends, node: usize) {
    let _held = LIST.lock();
    let next = read(ends.first + NEXT);
    write(node + NEXT, next);
    write(node + PREV, ends.first);
    // ORDERING: Release pairs with the walkers' dependent loads; a node is complete before it can
    // be reached. `next.prev` first, so that both directions agree for walkers by I2.
    atomic(next + PREV).store(node, Release);
    // ORDERING: as above.
    atomic(ends.first + NEXT).store(node, Release);
}

/// Takes `node` out. Its own pointers stay.
///
/// # Safety
/// * `node` was put in by `link` and not taken out since.
/// * The caller keeps the node's memory until [`wait_for_walkers`] has returned.
pub(super) unsafe fn unlink(node: usize) {
    let _held = LIST.lock();
    let (next, prev) = (read(node + NEXT), read(node + PREV));
    // ORDERING: Release as in `link`.
    atomic(prev + NEXT).store(next, Release);
    // ORDERING: as above.
    atomic(next + PREV).store(prev, Release);
}

/// Returns when every walk through the list that was in progress has ended. False, at once, if no
/// thread could be created; then only time tells.
///
/// The thread gets a stack of ours. One from libc's cache is in the list before it has its
/// thread-locals, for which libc wants the loader's lock; a `dlopen` that holds it and waits for
/// the list, and a set*id call that holds the list and waits for the thread, then wait for each
/// other for ever (seen; glibc's own doing, with any `pthread_create`).
#[must_use]
pub(in crate::tls) fn wait_for_walkers(area: Area) -> bool {
    extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    /// Address of the stack; 0 until it is mapped. Locked while a thread is on it.
    static STACK: Mutex<usize> = Mutex::new(0);
    let mut stack = STACK.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = area.with_small_stack();
    if *stack == 0 {
        let Ok(memory) = crate::tls::map_for_ever(bytes) else { return false };
        *stack = memory as usize;
    }
    let thread = with_stack(*stack as *mut u8, bytes, |attributes| {
        let mut thread = 0;
        // SAFETY: initialised attributes, a start routine that does nothing, a number of ours.
        let made = unsafe { libc::pthread_create(&mut thread, attributes, nothing, null_mut()) };
        if made == 0 { Ok(thread) } else { Err(made) }
    });
    let Ok(thread) = thread else { return false };
    // SAFETY: created above, joined once.
    unsafe { libc::pthread_join(thread, null_mut()) };
    true
}

/// Runs `f` with attributes for a thread on the stack `memory`.
pub(super) fn with_stack<T>(
    memory: *mut u8,
    bytes: usize,
    f: impl FnOnce(&mut libc::pthread_attr_t) -> Result<T, i32>,
) -> Result<T, i32> {
    let check = |code: i32| if code == 0 { Ok(()) } else { Err(code) };
    // SAFETY: an all-zero attribute object is only storage for the call below.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: initialises the storage.
    check(unsafe { libc::pthread_attr_init(&mut attributes) })?;
    // SAFETY: the attributes are initialised; the memory is the caller's to give.
    let set = check(unsafe { libc::pthread_attr_setstack(&mut attributes, memory.cast(), bytes) });
    let result = set.and_then(|()| f(&mut attributes));
    // SAFETY: the attributes are initialised and not used again. It can't fail.
    unsafe { libc::pthread_attr_destroy(&mut attributes) };
    result
}

fn read(address: usize) -> usize {
    // SAFETY: a word of a node between the ends, which only we write (I1), under the lock.
    unsafe { (address as *const usize).read_volatile() }
}

fn write(address: usize, value: usize) {
    // SAFETY: a word of a node that is not linked yet.
    unsafe { (address as *mut usize).write(value) };
}

fn atomic(address: usize) -> &'static AtomicUsize {
    // SAFETY: an aligned word of a node; nodes are type-stable while linked, and everybody who
    // writes it concurrently does so under the lock. Readers are glibc's plain loads.
    unsafe { AtomicUsize::from_ptr(address as *mut usize) }
}
