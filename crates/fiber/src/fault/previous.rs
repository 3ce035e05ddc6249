//! The handlers that were there before ours, and how the kernel would have called them.

use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::handler::{SIGNALS, is_sent};

/// The kernel's signal set: the first word of libc's.
type KernelMask = u64;

/// What was installed for one signal.
struct Previous {
    /// Written by: `remember`, once. Read by: the handler.
    action: OnceLock<libc::sigaction>,
    /// Set when a handler with SA_RESETHAND was called: from then on the default applies.
    spent: AtomicBool,
}

static PREVIOUS: [Previous; SIGNALS.len()] =
    [const { Previous { action: OnceLock::new(), spent: AtomicBool::new(false) } }; SIGNALS.len()];

/// What the kernel would do with the signal.
enum Disposition {
    Default,
    Ignore,
    Call(libc::sigaction),
}

/// Notes what is installed for `signal` now.
pub(super) fn remember(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeroes is a value of this type.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks; `action` is valid for a write of its type.
    if unsafe { libc::sigaction(signal, ptr::null(), &mut action) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if let Some(previous) = of(signal) {
        // Set already only if two threads remember at once; both saw the same.
        let _ = previous.action.set(action);
    }
    Ok(())
}

/// Does with a signal what would have been done without our handler.
///
/// # Safety
/// * The arguments are those that the kernel passed to a handler that runs now.
pub(super) unsafe fn forward_in_signal(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: valid while the handler runs - the caller's only obligation.
    let sent = is_sent(unsafe { &*info });
    match disposition(signal) {
        Disposition::Ignore if sent => {}
        // The kernel does not let a fault be ignored.
        Disposition::Ignore | Disposition::Default => restore_default(signal, sent),
        Disposition::Call(action) => {
            // SAFETY: passed on - the caller's only obligation.
            unsafe { block_as_kernel_would(signal, &action, context) };
            // SAFETY: passed on - the caller's only obligation.
            unsafe { call(&action, signal, info, context) };
        }
    }
}

fn of(signal: libc::c_int) -> Option<&'static Previous> {
    SIGNALS.iter().position(|known| *known == signal).map(|index| &PREVIOUS[index])
}

fn disposition(signal: libc::c_int) -> Disposition {
    let Some(previous) = of(signal) else { return Disposition::Default };
    let Some(action) = previous.action.get() else { return Disposition::Default };
    match action.sa_sigaction {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignore,
        // ORDERING: relaxed, the flag stands alone.
        _ if action.sa_flags & libc::SA_RESETHAND != 0 && previous.spent.swap(true, Relaxed) => {
            Disposition::Default
        }
        _ => Disposition::Call(*action),
    }
}

/// Makes the signal deadly. A fault repeats when the handler returns; a sent signal is sent again.
fn restore_default(signal: libc::c_int, sent: bool) {
    // SAFETY: all zeroes is a value of this type, and means SIG_DFL.
    let action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    if sent {
        // SAFETY: sends a signal; touches no memory.
        unsafe { libc::raise(signal) };
    }
}

/// Blocks what the kernel blocks for a handler: the mask in force when the signal came, the
/// handler's own mask, and the signal unless SA_NODEFER. Returning from ours undoes it.
///
/// # Safety
/// * `context` is what the kernel passed to a handler that runs now.
unsafe fn block_as_kernel_would(
    signal: libc::c_int,
    action: &libc::sigaction,
    context: *mut libc::c_void,
) {
    // SAFETY: valid - the caller's only obligation.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let own = if action.sa_flags & libc::SA_NODEFER == 0 { 1 << (signal - 1) } else { 0 };
    let mask = first_word(&context.uc_sigmask) | first_word(&action.sa_mask) | own;
    // SAFETY: `mask` is a kernel signal set of the size named. The system call is made directly
    // because libc's wrapper hides signals of its own.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            ptr::null_mut::<KernelMask>(),
            size_of::<KernelMask>(),
        )
    };
}

fn first_word(set: &libc::sigset_t) -> KernelMask {
    // SAFETY: libc's set is an array of words, and larger than one.
    unsafe { (&raw const *set).cast::<KernelMask>().read() }
}

/// # Safety
/// * `action` holds a handler, and the other arguments are the kernel's.
unsafe fn call(
    action: &libc::sigaction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    type Plain = extern "C" fn(libc::c_int);
    type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let handler: *const () = ptr::with_exposed_provenance(action.sa_sigaction);
    if action.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: without SA_SIGINFO the installer promised a function of this type.
        let handler = unsafe { std::mem::transmute::<*const (), Plain>(handler) };
        handler(signal);
    } else {
        // SAFETY: with SA_SIGINFO the installer promised a function of this type.
        let handler = unsafe { std::mem::transmute::<*const (), Informed>(handler) };
        handler(signal, info, context);
    }
}
