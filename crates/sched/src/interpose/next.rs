//! libc's own functions behind ours.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr};

/// The function of type `F` that would have been called without ours.
pub(super) struct Next<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    of: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// # Safety
    /// * Whatever has this name is a function of type `F`.
    pub(super) const unsafe fn new(name: &'static CStr) -> Next<F> {
        assert!(size_of::<F>() == size_of::<*mut c_void>());
        Next { name, found: AtomicPtr::new(ptr::null_mut()), of: PhantomData }
    }

    /// Looked up once. Not inside the runtime: the loader has a lock.
    pub(super) fn get(&self) -> Option<F> {
        // ORDERING: Relaxed for both; the code it points to is not new.
        let mut found = self.found.load(Relaxed);
        if found.is_null() {
            found = find(self.name);
            self.found.store(found, Relaxed);
        }
        // SAFETY: a function of type `F`, by the promise of `new`, and of a pointer's size.
        (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
    }
}

#[cfg(not(any(gosched_asan, gosched_tsan)))]
fn find(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// A sanitizer has functions of its own between ours and libc's, for what it must know of.
#[cfg(any(gosched_asan, gosched_tsan))]
fn find(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn __interceptor_pthread_create();
        fn __interceptor_sigaction();
        #[cfg(gosched_tsan)]
        fn __interceptor_fork();
    }
    match name.to_bytes() {
        b"pthread_create" => __interceptor_pthread_create as *mut c_void,
        b"sigaction" => __interceptor_sigaction as *mut c_void,
        #[cfg(gosched_tsan)]
        b"fork" => __interceptor_fork as *mut c_void,
        // SAFETY: a terminated name.
        _ => unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) },
    }
}
