//! The signal mask of a goroutine is its thread's.
//!
//! All machines have one mask, that of the process ([`start::machine_mask`]). A goroutine that
//! changes its own keeps its thread until it has restored it; so the mask follows the goroutine,
//! and nobody else sees it. If it ends before that, so does the thread.
//!
//! SIGURG is never blocked on a machine, or its goroutines could not be stopped; programs that block
//! it are told that it is.
//!
//! In a user's signal handler the mask is the handler's, and what it changes is gone when it
//! returns.

use crate::goroutine::GRef;
use crate::machine::{Inside, Machine};
use crate::start;
use gosched_base::os::{self, Errno};
use std::ffi::c_int;

/// The kernel's signal set.
pub(crate) type Mask = u64;

pub(crate) const fn bit(signal: c_int) -> Mask {
    1 << (signal - 1)
}

/// libc keeps them from being blocked.
const LIBCS_OWN: Mask = bit(32) | bit(33);
const NEVER_BLOCKED: Mask = bit(libc::SIGURG) | bit(libc::SIGKILL) | bit(libc::SIGSTOP) | LIBCS_OWN;

/// Changes the mask of the goroutine `g`, which calls. Returns the former one; `None` if this is a
/// user's handler, whose mask is not the goroutine's.
pub(crate) fn change(g: GRef, how: c_int, set: Option<Mask>) -> Option<Result<Mask, Errno>> {
    let in_force = match ask() {
        Ok(mask) => mask,
        Err(error) => return Some(Err(error)),
    };
    // Without a lock the goroutine may move now, from one machine with the mask of all to another.
    let machine = locked_machine(g);
    let (own, hides_urgent) = match machine {
        Some(machine) => (machine.mask.get(), machine.hides_urgent.get()),
        None => (start::machine_mask(), false),
    };
    if in_force != own {
        return None;
    }
    let before = if hides_urgent { own | bit(libc::SIGURG) } else { own };
    let Some(set) = set else { return Some(Ok(before)) };
    let wanted = match how {
        libc::SIG_BLOCK => before | set,
        libc::SIG_UNBLOCK => before & !set,
        libc::SIG_SETMASK => set,
        _ => return Some(Err(Errno(libc::EINVAL))),
    };
    if wanted == before {
        return Some(Ok(before));
    }
    Some(apply(wanted).map(|()| before))
}

fn apply(wanted: Mask) -> Result<(), Errno> {
    let Some(machine) = lock() else { return Ok(()) };
    let mask = wanted & !NEVER_BLOCKED;
    // Outside the runtime: signals that this lets through have their handlers run here.
    let result = set(mask);
    if result.is_ok() {
        machine.mask.set(mask);
        machine.hides_urgent.set(wanted & bit(libc::SIGURG) != 0);
    }
    if machine.mask.get() == start::machine_mask() && !machine.hides_urgent.get() {
        unlock();
    }
    result
}

/// The machine to which `g`, which calls, is locked.
fn locked_machine(g: GRef) -> Option<&'static Machine> {
    g.locked_to().and_then(|id| crate::scheduler::SCHEDULER.machine(id))
}

/// Locks the caller to its machine until `unlock`. Does not nest.
fn lock() -> Option<&'static Machine> {
    let inside = Inside::enter()?;
    let machine = inside.machine();
    if let Some(g) = machine.current() {
        machine.has_own_mask.set(true);
        machine.locked.set(Some(g));
        g.set_locked_to(Some(machine.id));
    }
    inside.leave();
    Some(machine)
}

fn unlock() {
    let Some(inside) = Inside::enter() else { return };
    let machine = inside.machine();
    machine.has_own_mask.set(false);
    crate::locked::unlock_if_free(machine);
    inside.leave();
}

/// Sets the kernel's mask of this thread, for a few instructions, and returns the former one.
pub(crate) fn replace(mask: Mask) -> Mask {
    let mut before: Mask = 0;
    let (at, old) = (&raw const mask as usize, &raw mut before as usize);
    let args = [libc::SIG_SETMASK as usize, at, old, size_of::<Mask>(), 0, 0];
    // SAFETY: the kernel reads and writes eight bytes each, which are ours.
    let _ = unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) };
    before
}

fn ask() -> Result<Mask, Errno> {
    let mut mask: Mask = 0;
    let args = [libc::SIG_BLOCK as usize, 0, &raw mut mask as usize, size_of::<Mask>(), 0, 0];
    // SAFETY: the kernel writes eight bytes, which are ours.
    unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) }.map(|_| mask)
}

fn set(mask: Mask) -> Result<(), Errno> {
    let at = &raw const mask as usize;
    let args = [libc::SIG_SETMASK as usize, at, 0, size_of::<Mask>(), 0, 0];
    // SAFETY: the kernel reads eight bytes.
    unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) }.map(drop)
}
