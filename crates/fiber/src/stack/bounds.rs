//! How much stack is left, wherever the code runs.

use std::arch::asm;
use std::cell::Cell;
use std::mem::MaybeUninit;

use super::arena::slot_of;

/// The usable part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest usable address.
    pub limit: usize,
    /// The address just above.
    pub top: usize,
}

impl Bounds {
    fn contains(self, address: usize) -> bool {
        (self.limit..self.top).contains(&address)
    }
}

/// The stack pointer.
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// The bounds of the stack this code runs on: a slot, or the thread's own stack. `None` on a stack
/// that is neither.
///
/// The first call on a thread's own stack allocates.
pub fn bounds() -> Option<Bounds> {
    let sp = stack_pointer();
    match slot_of(sp) {
        Some(slot) => Some(Bounds { limit: slot.limit(), top: slot.top() }),
        None => thread_bounds().filter(|bounds| bounds.contains(sp)),
    }
}

/// Bytes left below the stack pointer, or `None` on a stack that nothing is known of.
pub fn remaining() -> Option<usize> {
    bounds().map(|bounds| stack_pointer() - bounds.limit)
}

/// The bounds of the thread's own stack, asked for once a thread.
fn thread_bounds() -> Option<Bounds> {
    thread_local! {
        static BOUNDS: Cell<Option<Bounds>> = const { Cell::new(None) };
    }
    let known = BOUNDS.get();
    if known.is_some() {
        return known;
    }
    let asked = ask_thread_bounds();
    BOUNDS.set(asked);
    asked
}

#[cold]
fn ask_thread_bounds() -> Option<Bounds> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: names the calling thread; has no obligations.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: `attributes` is valid for a write of its type.
    if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut limit = std::ptr::null_mut();
    let mut bytes = 0;
    // SAFETY: initialised by the call above; the results are valid for writes.
    unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &mut limit, &mut bytes) };
    // SAFETY: initialised above and not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    Some(Bounds { limit: limit.addr(), top: limit.addr() + bytes })
}
