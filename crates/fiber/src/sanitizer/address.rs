//! AddressSanitizer: where the stack is that runs, and which ones nobody may touch.
//!
//! An idle stack is poisoned from the end of its last user to the begin of the next, so a waiter's
//! record that is used after its goroutine has ended is reported.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    fn __sanitizer_start_switch_fiber(save: *mut *mut c_void, bottom: *const c_void, size: usize);
    fn __sanitizer_finish_switch_fiber(
        saved: *mut c_void,
        bottom_left: *mut *const c_void,
        size_left: *mut usize,
    );
    fn __asan_poison_memory_region(at: *const c_void, size: usize);
    fn __asan_unpoison_memory_region(at: *const c_void, size: usize);
}

/// A context's record; null before its first use. Kept with the context, which may be used again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow(*mut Record);

/// A context's stack. For a thread's own stack it is what the sanitizer said when it was left last.
struct Record {
    bottom: usize,
    size: usize,
    /// The frames that the sanitizer keeps elsewhere, while the context is suspended.
    frames: *mut c_void,
    is_ending: bool,
}

thread_local! {
    /// Who was left by the switch that is under way on this thread.
    static LEFT: Cell<*mut Record> = const { Cell::new(ptr::null_mut()) };
}

impl Shadow {
    pub(crate) const EMPTY: Shadow = Shadow(ptr::null_mut());

    fn record(&mut self) -> &mut Record {
        if self.0.is_null() {
            self.0 = Box::into_raw(Box::new(Record {
                bottom: 0,
                size: 0,
                frames: ptr::null_mut(),
                is_ending: false,
            }));
        }
        // SAFETY: from a box that is never freed; the context's, as `self` is.
        unsafe { &mut *self.0 }
    }

    /// Something begins on the idle stack from `limit` to `top`. What the last frames on it have
    /// poisoned is forgotten, since those never returned.
    pub(crate) fn begin(&mut self, limit: usize, top: usize) {
        let size = top - limit;
        *self.record() = Record { bottom: limit, size, frames: ptr::null_mut(), is_ending: false };
        // SAFETY: marks memory of the caller's.
        unsafe { __asan_unpoison_memory_region(limit as *const c_void, size) };
    }

    /// The next switch away is the last.
    pub(crate) fn end(&mut self) {
        self.record().is_ending = true;
    }

    /// Left for good.
    pub(crate) fn ended(&mut self) {
        let Record { bottom, size, .. } = *self.record();
        // SAFETY: marks a stack that nobody uses; `begin` and `forget` undo it.
        unsafe { __asan_poison_memory_region(bottom as *const c_void, size) };
    }
}

/// The memory from `limit` to `top` is no idle stack any more.
pub(crate) fn forget(limit: usize, top: usize) {
    // SAFETY: marks memory of the caller's.
    unsafe { __asan_unpoison_memory_region(limit as *const c_void, top - limit) };
}

/// # Safety
/// * `from` runs, and the switch to `to`, which was left or has begun, follows at once.
#[inline(never)]
pub(crate) unsafe fn leave(from: *mut Shadow, to: *const Shadow) {
    // SAFETY: by the caller.
    let left = unsafe { &mut *from }.record();
    // SAFETY: by the caller.
    let to = unsafe { *to };
    // SAFETY: by the caller it has a record, which is never freed.
    let next = unsafe { &*to.0 };
    LEFT.set(left);
    let save = if left.is_ending { ptr::null_mut() } else { &raw mut left.frames };
    // SAFETY: by the caller.
    unsafe { __sanitizer_start_switch_fiber(save, next.bottom as *const c_void, next.size) };
}

/// Not inlined: the thread may be another one than before the switch, with other thread-locals.
///
/// # Safety
/// * `at` was resumed just now.
#[inline(never)]
pub(crate) unsafe fn arrive(at: *mut Shadow) {
    // SAFETY: by the caller.
    let frames = unsafe { &mut *at }.record().frames;
    // SAFETY: saved when it was left.
    unsafe { finish(frames) };
}

/// The first thing on a fresh stack; called by the first frame.
pub(crate) extern "C" fn arrive_first() {
    // SAFETY: nothing was saved for a stack that begins.
    unsafe { finish(ptr::null_mut()) };
}

/// # Safety
/// * A switch has just ended, to the context with these frames.
unsafe fn finish(frames: *mut c_void) {
    let (mut bottom, mut size) = (ptr::null(), 0);
    // SAFETY: by the caller; writes two words of ours.
    unsafe { __sanitizer_finish_switch_fiber(frames, &raw mut bottom, &raw mut size) };
    // SAFETY: whoever was left is published only after this, and records are never freed.
    if let Some(left) = unsafe { LEFT.get().as_mut() } {
        (left.bottom, left.size) = (bottom as usize, size);
    }
}

#[cfg(test)]
mod tests {
    use crate::tls::{self, Kind};
    use crate::{Coroutine, suspend};
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    unsafe extern "C" {
        fn __asan_address_is_poisoned(at: *const c_void) -> c_int;
    }

    fn is_poisoned(at: usize) -> bool {
        // SAFETY: looks the address up.
        unsafe { __asan_address_is_poisoned(at as *const c_void) != 0 }
    }

    /// What a coroutine had on its stack is reported once it has ended, not before.
    #[test]
    fn a_stack_without_a_user_is_poisoned() {
        static PLACE: AtomicUsize = AtomicUsize::new(0);
        tls::init(Some(Kind::Shared), None);
        for _ in 0..10 {
            let mut steps = Coroutine::new(|| {
                // Below all frames: those have poisoned places of their own.
                PLACE.store(crate::arch::stack_pointer() - 4096, SeqCst);
                suspend();
            })
            .expect("there is memory");
            assert!(!steps.resume());
            let place = PLACE.load(SeqCst);
            assert!(!is_poisoned(place), "suspended");
            assert!(steps.resume());
            assert!(is_poisoned(place), "ended");
        }
    }
}
