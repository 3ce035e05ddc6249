//! Functions of libc's that call others under the loader's locks.
//!
//! `dl_iterate_phdr` calls the caller's function, `dlopen` and `dlclose` call constructors and
//! destructors, `exit` and `fork` call handlers. Meanwhile the program counter is outside libc, and
//! the locks that they hold are needed for every new thread, every new thread-local block and every
//! backtrace. So a goroutine in one of them is not stopped by signal. It may wait in there, as a
//! thread may; then the others wait for it as they would for a thread.
//!
//! `dlopen` looks at who calls: a name without a slash is searched for along the caller's own
//! RUNPATH. A call from another module than ours whose meaning depends on that goes straight on to
//! libc's, and a constructor that it runs may be stopped.

use super::next::Next;
use crate::no_preempt::NoPreempt;
use gosched_fiber::arch::jump_by_caller;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;
type DlIteratePhdr = unsafe extern "C" fn(Option<Callback>, *mut c_void) -> c_int;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

// SAFETY: libc's, as declared above.
static DL_ITERATE_PHDR: Next<DlIteratePhdr> = unsafe { Next::new(c"dl_iterate_phdr") };
// SAFETY: as above.
static DLOPEN: Next<Dlopen> = unsafe { Next::new(c"dlopen") };
// SAFETY: as above.
static DLCLOSE: Next<Dlclose> = unsafe { Next::new(c"dlclose") };

/// libc's `dl_iterate_phdr`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dl_iterate_phdr(callback: Option<Callback>, data: *mut c_void) -> c_int {
    let Some(next) = DL_ITERATE_PHDR.get() else { return 0 };
    let _no_preempt = NoPreempt::new();
    // SAFETY: by the caller.
    unsafe { next(callback, data) }
}

/// libc's `dlclose`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(next) = DLCLOSE.get() else { return -1 };
    let _no_preempt = NoPreempt::new();
    // SAFETY: by the caller.
    unsafe { next(handle) }
}

jump_by_caller! {
    /// libc's `dlopen`.
    ///
    /// # Safety
    /// * As for libc's.
    dlopen, choose_dlopen
}

/// Where a call of `dlopen` goes on.
extern "C" fn choose_dlopen(name: *const c_char, _: c_int, caller: usize) -> Dlopen {
    let Some(next) = DLOPEN.get() else { return dlopen_protected };
    // `dladdr` takes the loader's lock.
    let _no_preempt = NoPreempt::new();
    // SAFETY: null or a terminated name, by the caller of `dlopen`.
    let depends = !name.is_null() && depends_on_caller(unsafe { CStr::from_ptr(name) });
    if depends && !is_in_own_module(caller) { next } else { dlopen_protected }
}

/// Whether who calls decides what `name` means: a search path of its own, or `$ORIGIN`.
fn depends_on_caller(name: &CStr) -> bool {
    let name = name.to_bytes();
    !name.contains(&b'/') || name.contains(&b'$')
}

/// # Safety
/// * As for `dlopen`.
unsafe extern "C" fn dlopen_protected(name: *const c_char, flags: c_int) -> *mut c_void {
    let Some(next) = DLOPEN.get() else { return ptr::null_mut() };
    let _no_preempt = NoPreempt::new();
    // SAFETY: by the caller.
    unsafe { next(name, flags) }
}

fn is_in_own_module(address: usize) -> bool {
    let own = base_of(dlopen_protected as *const () as usize);
    own.is_some() && own == base_of(address)
}

/// Where the module that `address` lies in begins.
fn base_of(address: usize) -> Option<usize> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: compares the address with those of modules, and writes to storage of ours.
    let is_known = unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) } != 0;
    // SAFETY: written if it is known.
    is_known.then(|| unsafe { info.assume_init() }.dli_fbase as usize)
}
