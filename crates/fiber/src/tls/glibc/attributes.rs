//! `pthread_getattr_np` for goroutines.
//!
//! Collectors, interpreters and crates that grow stacks ask it where their stack is, and take an
//! error for fatal. glibc reads the bounds from the control block, which has them right, but then
//! asks the kernel for the thread's affinity by its number, and a goroutine's is not the kernel's:
//! the call fails with ESRCH. So the program's own function of that name stands before libc's and
//! answers for stacks of ours; everything else goes to libc.
//!
//! Where the runtime is in a library that is loaded late, libc's comes first and keeps failing.

use crate::stack;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type GetAttributes = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;

static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// # Safety
/// * As for libc's: `thread` exists, and `attributes` is storage for one object.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_getattr_np(
    thread: libc::pthread_t,
    attributes: *mut libc::pthread_attr_t,
) -> c_int {
    match stack::slot_of(thread as usize) {
        // SAFETY: by the caller.
        Some(slot) => unsafe { describe(slot.limit()..slot.top(), attributes) },
        None => match real() {
            // SAFETY: by the caller.
            Some(f) => unsafe { f(thread, attributes) },
            None => libc::ENOSYS,
        },
    }
}

/// # Safety
/// * `attributes` is storage for one object.
unsafe fn describe(stack: std::ops::Range<usize>, attributes: *mut libc::pthread_attr_t) -> c_int {
    // SAFETY: by the caller.
    let made = unsafe { libc::pthread_attr_init(attributes) };
    if made != 0 {
        return made;
    }
    // Nobody can join a goroutine through libc.
    let detached = libc::PTHREAD_CREATE_DETACHED;
    // SAFETY: initialised above.
    unsafe { libc::pthread_attr_setdetachstate(attributes, detached) };
    let bytes = stack.end - stack.start;
    // SAFETY: initialised above. Only numbers are stored.
    unsafe { libc::pthread_attr_setstack(attributes, stack.start as *mut c_void, bytes) }
}

/// libc's function, looked up once.
fn real() -> Option<GetAttributes> {
    // ORDERING: Relaxed; every thread would store the same address.
    let mut real = REAL.load(Relaxed);
    if real.is_null() {
        // SAFETY: a terminated string; a missing symbol gives null.
        real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_getattr_np".as_ptr()) };
        // ORDERING: Relaxed; as above.
        REAL.store(real, Relaxed);
    }
    // SAFETY: null, or this function of libc's.
    unsafe { std::mem::transmute::<*mut c_void, Option<GetAttributes>>(real) }
}
