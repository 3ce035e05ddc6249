//! ThreadSanitizer: each stack is a thread of its own to it.
//!
//! A switch is told as one that orders: what runs first on a kernel thread does happen before what
//! runs there next.

use std::ffi::{c_uint, c_void};
use std::ptr;

unsafe extern "C" {
    fn __tsan_get_current_fiber() -> *mut c_void;
    fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
    fn __tsan_destroy_fiber(fiber: *mut c_void);
    fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
}

/// What the sanitizer calls a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow {
    fiber: *mut c_void,
}

impl Shadow {
    pub(crate) const EMPTY: Shadow = Shadow { fiber: ptr::null_mut() };

    pub(crate) fn begin(&mut self, _limit: usize, _top: usize) {
        // SAFETY: no arguments that matter.
        self.fiber = unsafe { __tsan_create_fiber(0) };
    }

    pub(crate) fn end(&mut self) {}

    /// Left for good.
    pub(crate) fn ended(&mut self) {
        // SAFETY: made by `begin`, and not the one that runs.
        unsafe { __tsan_destroy_fiber(self.fiber) };
        self.fiber = ptr::null_mut();
    }
}

/// The memory from `_limit` to `_top` is no idle stack any more.
#[inline(always)]
pub(crate) fn forget(_limit: usize, _top: usize) {}

/// # Safety
/// * `from` runs, and the switch to `to` follows at once, in the same function (I2).
#[inline(always)]
pub(crate) unsafe fn leave(from: *mut Shadow, to: *const Shadow) {
    // SAFETY: no arguments.
    let now = unsafe { __tsan_get_current_fiber() };
    // SAFETY: by the caller.
    unsafe { (*from).fiber = now };
    // SAFETY: by the caller.
    let next = unsafe { (*to).fiber };
    // SAFETY: `to` is suspended, or begins.
    unsafe { __tsan_switch_to_fiber(next, 0) };
}

/// # Safety
/// * None here.
#[inline(always)]
pub(crate) unsafe fn arrive(_at: *mut Shadow) {}
