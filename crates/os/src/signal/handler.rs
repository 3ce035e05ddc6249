//! The signal handler, and what was there before it.
//!
//! May be called at any instruction of the program: it touches two atomics and makes one system
//! call, without libc in between and thus without `errno`.

use super::Signal;
use gosched_base::os;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{
    AtomicI32, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Mutex, PoisonError};

/// Signals that have come, a bit each. Written by: handlers. Taken by: the dispatcher.
static PENDING: AtomicU64 = AtomicU64::new(0);
/// What the dispatcher reads from.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// Actions from before, by number less one.
static BEFORE: Mutex<[Option<libc::sigaction>; 64]> = Mutex::new([None; 64]);

/// The dispatcher reads from `bell`. Before the first handler is set.
pub(super) fn set_bell(bell: RawFd) {
    // ORDERING: Release pairs with the handler's load.
    BELL.store(bell, Release);
}

/// Takes the signals that have come.
pub(super) fn take_pending() -> u64 {
    // ORDERING: Acquire pairs with `handle`.
    PENDING.swap(0, Acquire)
}

extern "C" fn handle(number: i32) {
    // ORDERING: Release pairs with `take_pending`; S1 before S2.
    PENDING.fetch_or(1 << (number - 1), Release);
    let one = 1_u64;
    // ORDERING: Acquire pairs with `set_bell`.
    let args = [BELL.load(Acquire) as usize, &raw const one as usize, 8, 0, 0, 0];
    // SAFETY: the kernel reads eight bytes, which are ours. A full counter (EAGAIN) has rung.
    let _ = unsafe { os::syscall(libc::SYS_write, args) };
}

/// Sets the handler for `signal`.
pub(super) fn install(signal: Signal) {
    let action: extern "C" fn(i32) = handle;
    set(signal, action as *const () as usize);
}

pub(super) fn ignore(signal: Signal) {
    set(signal, libc::SIG_IGN);
}

fn set(signal: Signal, action: usize) {
    // SAFETY: all zeroes are a valid action.
    let mut new: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    new.sa_sigaction = action;
    // On the alternate stack: a goroutine's may be short of room.
    new.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // The runtime's own signal stays out while the handler runs.
    // SAFETY: the set is ours.
    unsafe { libc::sigaddset(&mut new.sa_mask, libc::SIGURG) };
    let mut old = MaybeUninit::zeroed();
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the new action's handler may run anywhere; the old action is written.
    let done = unsafe { libc::sigaction(signal.as_raw(), &new, old.as_mut_ptr()) };
    if done == 0 {
        let slot = &mut before[signal.as_raw() as usize - 1];
        // SAFETY: the kernel has written it, and it was zeroed.
        slot.get_or_insert(unsafe { old.assume_init() });
    }
}

/// Sets what was there before the first call of ours.
pub(super) fn restore(signal: Signal) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(old) = before[signal.as_raw() as usize - 1].take() {
        // SAFETY: an action that was in place before.
        unsafe { libc::sigaction(signal.as_raw(), &old, ptr::null_mut()) };
    }
}

/// Sends the signal to this process.
pub(super) fn raise(signal: Signal) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(os::getpid(), signal.as_raw()) };
}
