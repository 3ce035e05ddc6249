//! The bell that handlers ring: an eventfd, used without libc in between and thus without `errno`.

use gosched_base::os;
use std::io;
use std::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Release},
};

/// A counter in the kernel; never closed.
pub(super) struct Bell(AtomicI32);

impl Bell {
    pub(super) const fn new() -> Bell {
        Bell(AtomicI32::new(-1))
    }

    /// Opens it, unless it is open. Before the first handler is set, by one at a time.
    pub(super) fn open(&self) -> io::Result<()> {
        // ORDERING: Acquire, as below.
        if self.0.load(Acquire) >= 0 {
            return Ok(());
        }
        // SAFETY: no memory is passed.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if bell < 0 {
            return Err(io::Error::last_os_error());
        }
        // ORDERING: Release pairs with the Acquires below.
        self.0.store(bell, Release);
        Ok(())
    }

    /// In a handler.
    pub(super) fn ring(&self) {
        let one = 1_u64;
        // ORDERING: Acquire pairs with `open`.
        let args = [self.0.load(Acquire) as usize, &raw const one as usize, 8, 0, 0, 0];
        // SAFETY: the kernel reads eight bytes, which are ours. A full counter (EAGAIN) has rung.
        let _ = unsafe { os::syscall(libc::SYS_write, args) };
    }

    /// Returns when it was rung since the last time, or for no reason.
    pub(super) fn wait(&self) {
        let mut rings = 0_u64;
        // ORDERING: Acquire pairs with `open`.
        let args = [self.0.load(Acquire) as usize, &raw mut rings as usize, 8, 0, 0, 0];
        // SAFETY: the kernel writes eight bytes, which are ours.
        let _ = unsafe { os::syscall(libc::SYS_read, args) };
    }
}
