//! The handler: whose fault is it?

use std::io;
use std::ptr;
use std::sync::OnceLock;

use crate::stack::{SlotInfo, slot_of};

use super::{previous, report};

/// The signals a bad memory access raises.
pub(super) const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Installs the handler, once a process. Later calls return the first one's result.
///
/// A thread reports an overflow only if it has an alternate signal stack; threads of the Rust
/// standard library have one, others get one by `alternate_stack_install`.
///
/// # Errors
/// What `sigaction` reports; not expected on Linux.
///
/// # Examples
/// ```
/// use gosched_fiber::fault::{self, Hooks, Identity};
/// use gosched_fiber::stack::SlotInfo;
///
/// fn identity(_: &SlotInfo) -> Option<Identity> {
///     Some(Identity { id: 7, name: Some(b"worker") })
/// }
/// fn dump(_: &SlotInfo) {}
///
/// static HOOKS: Hooks = Hooks { identity, dump };
/// fault::set_hooks(&HOOKS);
/// fault::install()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn install() -> io::Result<()> {
    static DONE: OnceLock<Result<(), i32>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        SIGNALS.into_iter().try_for_each(|signal| {
            install_one(signal).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
        })
    });
    done.map_err(io::Error::from_raw_os_error)
}

fn install_one(signal: libc::c_int) -> io::Result<()> {
    // First remembered, then replaced: the handler may run at once.
    previous::remember(signal)?;
    // SAFETY: all zeroes is a value of this type.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    // Not deferred: a fault while the report is written must end the process with our code.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: `on_fault` has the signature that SA_SIGINFO asks for and is async-signal-safe (I1).
    let result = unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs in a signal handler.
extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    report::end_if_reporting_in_signal();
    // SAFETY: the kernel passes a context to handlers with SA_SIGINFO.
    let sp = unsafe { stack_pointer(context) };
    // SAFETY: the kernel passes the signal's description to handlers with SA_SIGINFO.
    let address = unsafe { fault_address(info) };
    match address.and_then(|address| overflowed(address, sp)) {
        Some(slot) => report::overflow_in_signal(&slot, sp),
        // SAFETY: the arguments are the kernel's, for this very signal.
        None => unsafe { previous::forward_in_signal(signal, info, context) },
    }
}

/// The slot whose stack overflowed, if that is what a fault at `address` means.
///
/// A frame larger than what is left takes the stack pointer into the guard or, with the guard's
/// size as the bound of what we promise to catch, below it. A stray pointer from another stack into
/// a guard is not an overflow.
pub(super) fn overflowed(address: usize, sp: usize) -> Option<SlotInfo> {
    let slot = slot_of(address).filter(SlotInfo::in_guard)?;
    let lowest = slot.guard().start - slot.guard().len();
    (lowest..=slot.top()).contains(&sp).then_some(slot)
}

/// # Safety
/// * `context` is what the kernel passed to a handler.
unsafe fn stack_pointer(context: *mut libc::c_void) -> usize {
    // SAFETY: valid - the caller's obligation; on x86-64 Linux it is a `ucontext_t`.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
}

/// The address that was accessed, or `None` if a process sent the signal.
///
/// # Safety
/// * `info` is what the kernel passed to a handler of a fault signal.
unsafe fn fault_address(info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: valid - the caller's obligation.
    let info = unsafe { &*info };
    if is_sent(info) {
        return None;
    }
    // SAFETY: the kernel fills the address in for faults.
    Some(unsafe { info.si_addr() }.addr())
}

/// Whether a process sent the signal, rather than an instruction having raised it.
pub(super) fn is_sent(info: &libc::siginfo_t) -> bool {
    info.si_code <= 0
}
