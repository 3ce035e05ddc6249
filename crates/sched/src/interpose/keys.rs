//! Protection keys: the first one that is asked for makes switches keep them apart.

use super::next::Next;
use gosched_fiber::arch;
use std::ffi::{c_int, c_uint};

type PkeyAlloc = unsafe extern "C" fn(c_uint, c_uint) -> c_int;

// SAFETY: libc's, as declared above.
static PKEY_ALLOC: Next<PkeyAlloc> = unsafe { Next::new(c"pkey_alloc") };

/// libc's `pkey_alloc`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pkey_alloc(flags: c_uint, rights: c_uint) -> c_int {
    arch::use_protection_keys();
    // SAFETY: by the caller.
    PKEY_ALLOC.get().map_or(-1, |next| unsafe { next(flags, rights) })
}
