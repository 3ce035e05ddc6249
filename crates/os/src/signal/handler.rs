//! The signal handler, and what was there before it.
//!
//! May be called at any instruction of the program: it touches two atomics and makes one system
//! call, without libc in between and thus without `errno`.

use super::Signal;
use super::bell::Bell;
use super::pending::Pending;
use super::table::Actions;
use gosched_base::os;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// What handlers have seen.
pub(super) static PENDING: Pending = Pending::new(Bell::new());

/// Actions from before, by number less one.
static BEFORE: Mutex<[Option<libc::sigaction>; 64]> = Mutex::new([None; 64]);

extern "C" fn handle(number: i32) {
    PENDING.note(Signal(number).bit());
}

/// The actions of this process.
pub(super) struct Kernel;

impl Actions for Kernel {
    fn install(&self, signal: Signal) {
        let action: extern "C" fn(i32) = handle;
        set(signal, action as *const () as usize);
    }

    fn ignore(&self, signal: Signal) {
        set(signal, libc::SIG_IGN);
    }

    /// Sets what was there before the first call of ours.
    fn restore(&self, signal: Signal) {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = before[signal.as_raw() as usize - 1].take() {
            // SAFETY: an action that was in place before.
            unsafe { libc::sigaction(signal.as_raw(), &old, ptr::null_mut()) };
        }
    }

    fn raise(&self, signal: Signal) {
        // SAFETY: no memory is passed.
        unsafe { libc::kill(os::getpid(), signal.as_raw()) };
    }
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
