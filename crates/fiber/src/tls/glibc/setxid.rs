//! Signal 33: how glibc's setuid and its kin reach every thread.
//!
//! The caller signals each thread in the list and waits until each has cleared a bit in its own
//! control block, which glibc's handler finds through FS. On a machine that runs a goroutine FS is
//! the goroutine's block: the machine's bit would stay, and the caller would wait for ever (seen:
//! two seconds beside a loop, without end beside a blocked read).
//!
//! So glibc's handler is wrapped: FS is set to the machine's own block around it. The action is
//! read and written with the raw system call, because libc's `sigaction` refuses this signal.

use crate::host;
use gosched_base::os;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// SIGSETXID in glibc's nptl.
const SIGNAL: usize = 33;

/// The kernel's own `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

static INNER: AtomicUsize = AtomicUsize::new(0);

/// Wraps glibc's handler. A thread must have been created before: glibc installs it then.
/// Returns false where there is none to wrap.
pub(super) fn wrap() -> bool {
    let mut action = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let get = [SIGNAL, 0, &raw mut action as usize, 8, 0, 0];
    // SAFETY: the kernel writes one action, which is ours.
    let read = unsafe { os::syscall(libc::SYS_rt_sigaction, get) };
    if read.is_err() || action.handler <= 1 || action.handler == wrapper as *const () as usize {
        return action.handler > 1;
    }
    // ORDERING: Relaxed; the handler can't run with our function before the call below.
    INNER.store(action.handler, Ordering::Relaxed);
    action.handler = wrapper as *const () as usize;
    let set = [SIGNAL, &raw const action as usize, 0, 8, 0, 0];
    // SAFETY: the same action with a handler of the same kind in front.
    unsafe { os::syscall(libc::SYS_rt_sigaction, set) }.is_ok()
}

// Its address is compared: one that may be inlined has one in each unit of code.
#[inline(never)]
extern "C" fn wrapper(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // ORDERING: Relaxed; see `wrap`.
    let inner = INNER.load(Ordering::Relaxed);
    // SAFETY: the value is glibc's handler, installed with SA_SIGINFO.
    let inner: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
        unsafe { std::mem::transmute(inner) };
    host::with_own_block_in_signal(|| inner(signal, info, context));
}
