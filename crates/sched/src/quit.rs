//! SIGQUIT: a dump of every goroutine, and the end of the process. Go's.
//!
//! Only where the runtime was given the process (`run`, `#[gosched::main]`), and only if nobody handles
//! the signal. A program that is told of it by a channel handles it by that.
//!
//! Signal safety: what the handler calls neither allocates nor locks (see `fatal`), and it does not
//! return.

use crate::current::current;
use crate::fatal::{self, Request};
use crate::machine::Machine;
use gosched_base::{Stderr, os};
use gosched_fiber::arch::preempt::Interrupted;
use gosched_fiber::host;
use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::sync::Once;

/// Go's for fatal errors.
const EXIT_CODE: i32 = 2;

/// Handles the signal, if nobody does. Once.
pub(crate) fn handle_unless_handled() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut previous = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: asks only.
        let asked =
            unsafe { libc::sigaction(libc::SIGQUIT, std::ptr::null(), previous.as_mut_ptr()) };
        // SAFETY: written by the call above if it was done.
        if asked != 0 || unsafe { previous.assume_init() }.sa_sigaction != libc::SIG_DFL {
            return;
        }
        // SAFETY: all-zero is a valid action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = dump_and_exit as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: fills the set, which is ours: nothing is to stop or move the handler.
        unsafe { libc::sigfillset(&mut action.sa_mask) };
        // SAFETY: the action is ours; the handler is async-signal-safe.
        unsafe { libc::sigaction(libc::SIGQUIT, &action, std::ptr::null_mut()) };
    });
}

extern "C" fn dump_and_exit(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the third argument of the handler that runs.
    let at = unsafe { Interrupted::new(context) }.position();
    // SAFETY: the second one.
    let code = unsafe { info.as_ref() }.map_or(0, |info| info.si_code);
    let machine = host::current_machine().cast::<Machine>();
    let mut out = Stderr;
    let _ = write!(out, "SIGQUIT: quit\nPC={:#x} ", at[0]);
    // SAFETY: hosts of this process are machines, and never freed.
    let _ = match unsafe { machine.as_ref() } {
        Some(machine) => writeln!(out, "m={} sigcode={code}\n", machine.id),
        None => writeln!(out, "m=nil sigcode={code}\n"),
    };
    fatal::write(Request { cause: current(), at: Some(at), is_headed: false });
    os::exit_group(EXIT_CODE)
}
