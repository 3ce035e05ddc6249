//! libc's functions for signal masks and handlers.
//!
//! * `pthread_sigmask`, `sigprocmask`: a goroutine with a mask of its own keeps its thread, see
//!   [`signal_mask`].
//! * `sigaction`, `signal`: SIGURG is ours; who installs a handler for it is called for every one
//!   that no request of ours explains. And a handler with SA_NODEFER may run with the very mask of
//!   the code it interrupted; then nothing would tell that it runs, and the goroutine could be
//!   moved out of it. Such handlers get a signal into their mask that Linux never sends (SIGSTKFLT).
//!
//! Rejected: SIGURG in the mask of every handler, which would tell as well, but a handler that
//! computes for long could never be stopped.

use super::next::Next;
use crate::current::current_outside;
use crate::preempt;
use crate::signal_mask::{self, Mask, bit};
use gosched_base::os::Errno;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type ChangeMask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Signal = unsafe extern "C" fn(c_int, libc::sighandler_t) -> libc::sighandler_t;

// SAFETY: libc's, as declared above.
static PTHREAD_SIGMASK: Next<ChangeMask> = unsafe { Next::new(c"pthread_sigmask") };
// SAFETY: as above.
static SIGPROCMASK: Next<ChangeMask> = unsafe { Next::new(c"sigprocmask") };
// SAFETY: as above.
static SIGACTION: Next<Sigaction> = unsafe { Next::new(c"sigaction") };
// SAFETY: as above.
static SIGNAL: Next<Signal> = unsafe { Next::new(c"signal") };

/// libc's `pthread_sigmask`: returns the error's number.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: by the caller.
    match unsafe { change_mask(how, set, old) } {
        Some(Ok(())) => 0,
        Some(Err(Errno(number))) => number,
        // SAFETY: by the caller.
        None => PTHREAD_SIGMASK.get().map_or(libc::ENOSYS, |next| unsafe { next(how, set, old) }),
    }
}

/// libc's `sigprocmask`: sets `errno`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: by the caller.
    match unsafe { change_mask(how, set, old) } {
        Some(result) => super::with_errno(result.map(|()| 0)) as c_int,
        // SAFETY: by the caller.
        None => SIGPROCMASK.get().map_or(-1, |next| unsafe { next(how, set, old) }),
    }
}

/// `None`: not a goroutine's mask.
///
/// # Safety
/// * As for `sigprocmask`.
unsafe fn change_mask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> Option<Result<(), Errno>> {
    let g = current_outside()?;
    // SAFETY: null or a set, by the caller; the kernel's is the first word of libc's.
    let set = unsafe { set.cast::<Mask>().as_ref() }.copied();
    let changed = signal_mask::change(g, how, set)?;
    Some(changed.map(|before| {
        if !old.is_null() {
            // SAFETY: all-zero is the empty set.
            let mut empty = unsafe { MaybeUninit::<libc::sigset_t>::zeroed().assume_init() };
            // SAFETY: the first word of a set that is ours.
            unsafe { (&raw mut empty).cast::<Mask>().write(before) };
            // SAFETY: a place for a set, by the caller.
            unsafe { old.write(empty) };
        }
    }))
}

/// Handlers whose mask got the marker from us, by signal.
static MARKED: AtomicU64 = AtomicU64::new(0);

/// libc's `sigaction`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: by the caller.
    if let Some(result) = unsafe { preempt::exchange_previous(signal, new, old) } {
        return super::with_errno(result.map(|()| 0)) as c_int;
    }
    let Some(next) = SIGACTION.get() else { return -1 };
    // ORDERING: Relaxed; racing calls for one signal have no order anyway.
    let was_marked = is_signal(signal) && MARKED.load(Relaxed) & bit(signal) != 0;
    // SAFETY: null or an action, by the caller.
    let marked = unsafe { new.as_ref() }.filter(|_| is_signal(signal)).and_then(with_marker);
    let new_or_marked = marked.as_ref().map_or(new, |action| action);
    // SAFETY: by the caller, or an action of ours.
    let result = unsafe { next(signal, new_or_marked, old) };
    if result != 0 {
        return result;
    }
    // SAFETY: null or written by libc.
    if let Some(old) = unsafe { old.as_mut() }.filter(|_| was_marked) {
        // SAFETY: an initialised set and a signal.
        unsafe { libc::sigdelset(&mut old.sa_mask, libc::SIGSTKFLT) };
    }
    // ORDERING: Relaxed for both; as above.
    if marked.is_some() {
        MARKED.fetch_or(bit(signal), Relaxed);
    } else if !new.is_null() && was_marked {
        MARKED.fetch_and(!bit(signal), Relaxed);
    }
    0
}

fn is_signal(signal: c_int) -> bool {
    (1..=64).contains(&signal)
}

/// The action with the marker, if it needs and lacks it.
fn with_marker(action: &libc::sigaction) -> Option<libc::sigaction> {
    let is_handler = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
    // SAFETY: an initialised set and a signal.
    let has_marker = unsafe { libc::sigismember(&action.sa_mask, libc::SIGSTKFLT) } == 1;
    if !is_handler || has_marker || action.sa_flags & libc::SA_NODEFER == 0 {
        return None;
    }
    let mut marked = *action;
    // SAFETY: as above.
    unsafe { libc::sigaddset(&mut marked.sa_mask, libc::SIGSTKFLT) };
    Some(marked)
}

/// libc's `signal`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: all-zero is a valid action.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut old = new;
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: both are ours.
    match unsafe { preempt::exchange_previous(signal, &new, &mut old) } {
        Some(_) => old.sa_sigaction,
        // SAFETY: by the caller.
        None => SIGNAL.get().map_or(libc::SIG_ERR, |next| unsafe { next(signal, handler) }),
    }
}

/// Gives handlers that were installed before the runtime started what they need.
pub(crate) fn mark_installed() {
    for signal in (1..=64).filter(|signal| *signal != libc::SIGURG) {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: only asks; the action is ours.
        if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
            continue;
        }
        // SAFETY: written by the call above.
        let action = unsafe { action.assume_init() };
        if with_marker(&action).is_some() {
            // SAFETY: what is installed already; `sigaction` is ours and adds the marker.
            unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
        }
    }
}
