//! The monitor's thread, made past std.
//!
//! A thread of std's registers destructors of thread-locals before it does anything else, which
//! libc does under a lock of the loader's. A goroutine may hold that lock for as long as it likes, in
//! a callback that waits. The monitor is who gets others on then, so it must not have to wait for
//! the lock itself: one that came to its CPU too late would never begin. (Machines and the starter
//! may wait for it; the monitor ends somebody's call if none of them comes, see `interrupt`.)

use std::ffi::c_void;
use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::ptr;

/// Starts a thread that runs the monitor and never ends.
pub(super) fn start() -> Result<()> {
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: writes the thread's handle; the function takes no argument.
    let error =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), begin, ptr::null_mut()) };
    if error != 0 {
        return Err(Error::from_raw_os_error(error));
    }
    // SAFETY: written by the call above.
    let thread = unsafe { thread.assume_init() };
    // SAFETY: just made, and nobody else's.
    unsafe { libc::pthread_detach(thread) };
    Ok(())
}

extern "C" fn begin(nothing: *mut c_void) -> *mut c_void {
    // SAFETY: a terminated name.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"gosched-monitor".as_ptr()) };
    super::watch();
    nothing
}
