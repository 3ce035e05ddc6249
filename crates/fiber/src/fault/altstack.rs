//! The alternate signal stack of a runtime thread.
//!
//! 64 KiB on top of what the kernel needs for its frame: a signal may come while another's handler
//! is at work there. It has a guard of its own: an overflow there kills the process instead of its memory.
//!
//! Its pages come when a handler needs them. Touched ahead of time they would take as long as all the
//! rest of making a thread, for stacks that mostly see two pages of one handler; and where there is no
//! memory for a page, the kernel ends the process for whatever asks for one next.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use crate::stack::sys::{self, Access, PAGE};

const BYTES: usize = 64 << 10;
const GUARD: usize = 64 << 10;

/// Memory for an alternate signal stack: taken by whoever makes a thread, who can be told that there
/// is none, and installed by the thread.
#[derive(Debug)]
pub struct SignalStack {
    mapping: Range<usize>,
}

impl SignalStack {
    /// Takes memory for one.
    ///
    /// # Errors
    /// What `mmap` or `mprotect` report.
    pub fn take() -> io::Result<SignalStack> {
        let bytes = GUARD + (BYTES + frame_bytes()).next_multiple_of(PAGE);
        let base = sys::map(bytes, Access::ReadWrite)?;
        let stack = SignalStack { mapping: base..base + bytes };
        // SAFETY: mapped above, known to nobody else.
        unsafe { sys::protect(base..base + GUARD, Access::None) }?;
        Ok(stack)
    }

    /// Makes it the calling thread's.
    ///
    /// # Errors
    /// What `sigaltstack` reports.
    pub fn install(self) -> io::Result<AlternateStack> {
        let usable = self.usable();
        let previous = swap(usable.start, usable.len())?;
        Ok(AlternateStack { stack: Some(self), previous, _of_this_thread: PhantomData })
    }

    fn usable(&self) -> Range<usize> {
        self.mapping.start + GUARD..self.mapping.end
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: mapped by `take`, and installed nowhere: an `AlternateStack` keeps it otherwise.
        unsafe { sys::unmap(self.mapping.clone()) };
    }
}

/// Keeps the alternate stack of this thread installed; the one before returns when it is dropped.
///
/// Bound to the thread, so it is not `Send`.
#[derive(Debug)]
#[must_use = "the alternate stack is removed when this is dropped"]
pub struct AlternateStack {
    /// Until it is dropped.
    stack: Option<SignalStack>,
    previous: libc::stack_t,
    _of_this_thread: PhantomData<*mut ()>,
}

/// Gives the calling thread an alternate signal stack.
///
/// # Errors
/// What `mmap`, `mprotect` or `sigaltstack` report.
pub fn alternate_stack_install() -> io::Result<AlternateStack> {
    SignalStack::take()?.install()
}

impl AlternateStack {
    /// The addresses a handler may use. Tells a handler which thread it runs on.
    pub fn usable(&self) -> Range<usize> {
        self.stack.as_ref().map_or(0..0, SignalStack::usable)
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: the stack that was there before; its owner keeps it while it is installed.
        if unsafe { libc::sigaltstack(&self.previous, ptr::null_mut()) } != 0 {
            // In use: this runs in a handler. Better lose the memory than pull it away.
            std::mem::forget(self.stack.take());
        }
    }
}

/// What the kernel's own signal frame takes, which grows with the registers of the CPU.
fn frame_bytes() -> usize {
    // SAFETY: reads a table that the kernel made.
    unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) as usize }
}

fn swap(base: usize, bytes: usize) -> io::Result<libc::stack_t> {
    let ss_sp = ptr::with_exposed_provenance_mut(base);
    let stack = libc::stack_t { ss_sp, ss_flags: 0, ss_size: bytes };
    let mut previous = MaybeUninit::uninit();
    // SAFETY: the new stack is writable and stays mapped while installed; `previous` is valid for a
    // write of its type.
    if unsafe { libc::sigaltstack(&stack, previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: written by the call above.
    Ok(unsafe { previous.assume_init() })
}
