//! Functions of libc's that make threads of libc's own: for timers and message queues that call
//! back, asynchronous I/O, asynchronous name resolution.
//!
//! As `pthread_create` (see `interpose`) each hides the machine meanwhile: the kernel copies GS, by
//! which code finds its machine, and libc's thread, and all that it makes, would take themselves
//! for the goroutine that called. So they are plain threads, and may use the runtime as such.

use crate::current::current_outside;
use crate::machine::{Inside, Machine};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// While it exists the calling thread has no machine.
struct Hidden(Option<&'static Machine>);

impl Hidden {
    fn new() -> Hidden {
        // Entering ends a declared call, if this is in one.
        Hidden(current_outside().and_then(|_| Inside::enter()).map(Inside::leave_hidden))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(machine) = self.0 {
            machine.show();
        }
    }
}

/// libc's own `name`, looked up once. Not inside the runtime: the loader has a lock.
fn libcs(name: &CStr, found: &AtomicPtr<c_void>) -> *mut c_void {
    // ORDERING: Relaxed for both; the code it points to is not new.
    let mut function = found.load(Relaxed);
    if function.is_null() {
        // SAFETY: a terminated name.
        function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        found.store(function, Relaxed);
    }
    function
}

fn missing() -> c_int {
    // SAFETY: libc's own, for the calling thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { errno.write(libc::ENOSYS) };
    -1
}

macro_rules! hidden {
    ($($name:ident: $symbol:literal ($($argument:ident: $type:ty),+);)+) => { $(
        /// libc's function of that name.
        ///
        /// # Safety
        /// * As for libc's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),+) -> c_int {
            type Function = unsafe extern "C" fn($($type),+) -> c_int;
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            let found = libcs($symbol, &FOUND);
            // SAFETY: the function of that name has that signature; null becomes `None`.
            let function = unsafe { std::mem::transmute::<*mut c_void, Option<Function>>(found) };
            let Some(function) = function else { return missing() };
            let _hidden = Hidden::new();
            // SAFETY: by the caller.
            unsafe { function($($argument),+) }
        }
    )+ };
}

// What the pointers point to is libc's business.
hidden! {
    timer_create: c"timer_create" (clock: c_int, event: *mut c_void, timer: *mut c_void);
    mq_notify: c"mq_notify" (queue: c_int, event: *const c_void);
    aio_read: c"aio_read" (control: *mut c_void);
    aio_read64: c"aio_read64" (control: *mut c_void);
    aio_write: c"aio_write" (control: *mut c_void);
    aio_write64: c"aio_write64" (control: *mut c_void);
    aio_fsync: c"aio_fsync" (operation: c_int, control: *mut c_void);
    aio_fsync64: c"aio_fsync64" (operation: c_int, control: *mut c_void);
    lio_listio: c"lio_listio" (mode: c_int, list: *const c_void, n: c_int, event: *mut c_void);
    lio_listio64: c"lio_listio64" (mode: c_int, list: *const c_void, n: c_int, event: *mut c_void);
    getaddrinfo_a: c"getaddrinfo_a" (mode: c_int, list: *mut c_void, n: c_int, event: *mut c_void);
}
