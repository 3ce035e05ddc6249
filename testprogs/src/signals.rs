//! Signal handlers, and what belongs to a thread while one runs.

use std::arch::{asm, naked_asm};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// A handler with SA_SIGINFO.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What the kernel takes.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;
const MASK_BYTES: usize = size_of::<u64>();

/// Installs a handler by a system call of its own, past libc, as other runtimes do. It runs on the
/// stack of the interrupted code, and blocks its own signal only.
pub fn install_past_libc(signal: c_int, handler: Handler) {
    let action = KernelAction {
        handler: handler as *const () as usize,
        flags: libc::SA_SIGINFO as u64 | libc::SA_RESTART as u64 | SA_RESTORER,
        restorer: restore as *const () as usize,
        mask: 0,
    };
    let (number, no_old) = (libc::SYS_rt_sigaction, std::ptr::null_mut::<KernelAction>());
    // SAFETY: an action as the kernel takes it; that the handler is one is the caller's business,
    // as for libc's function.
    let result = unsafe { libc::syscall(number, signal, &raw const action, no_old, MASK_BYTES) };
    assert_eq!(result, 0);
}

/// Installs a handler as programs do, with these flags besides SA_SIGINFO, and no mask.
pub fn install(signal: c_int, handler: Handler, flags: c_int) {
    // SAFETY: all zeroes is a value of this type.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags | libc::SA_SIGINFO;
    // SAFETY: an action of ours.
    assert_eq!(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }, 0);
}

/// # Safety
/// * The kernel goes here when a handler returns.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    naked_asm!("mov eax, 15", "syscall")
}

/// What belongs to the kernel's thread, and does not go along with a goroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel's number of the thread.
    pub thread: i32,
    /// Where its alternate signal stack begins.
    pub stack: usize,
    /// The signals that it blocks.
    pub mask: u64,
}

impl Surroundings {
    /// Those of the calling thread. Goroutines may be moved between the three questions, unless
    /// they run in a signal handler or are locked to the thread.
    #[must_use]
    pub fn now() -> Surroundings {
        let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
        // SAFETY: asks only.
        unsafe { libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) };
        // SAFETY: filled by the call; zeroes are a value as well.
        let stack = unsafe { stack.assume_init() }.ss_sp as usize;
        Surroundings { thread: thread_id(), stack, mask: mask() }
    }
}

fn mask() -> u64 {
    let (mut mask, no_new) = (0_u64, std::ptr::null::<u64>());
    let (number, how) = (libc::SYS_rt_sigprocmask, libc::SIG_BLOCK);
    // SAFETY: asks only, into eight bytes.
    unsafe { libc::syscall(number, how, no_new, &raw mut mask, MASK_BYTES) };
    mask
}

/// The kernel's number of the thread, without libc, in which code is not stopped.
#[must_use]
pub fn thread_id() -> i32 {
    let id: i64;
    // SAFETY: no memory is passed.
    unsafe {
        asm!("syscall", inlateout("rax") libc::SYS_gettid => id, out("rcx") _, out("r11") _,
            options(nomem, nostack));
    }
    id as i32
}

/// Sends `signal` to a thread of this process.
pub fn send(thread: i32, signal: c_int) {
    let process = std::process::id();
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
}
