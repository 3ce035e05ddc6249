//! Which signals a thread of ours takes.
//!
//! libc keeps two signals for itself, 32 and 33. With the second it makes every thread carry out a
//! set*id call, and the caller waits for all of them: a thread that blocks it for long makes
//! `setgid` hang anywhere in the process. Hence two ways to block signals: for a few instructions
//! all of them, for longer all but libc's.

use gosched_base::os;

/// Blocks every signal that libc lets a program block, for as long as the thread lives.
pub(crate) fn block_for_good() {
    // SAFETY: an all-zero set is only storage for the call below.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: fills the set, which is ours, with all signals but libc's own.
    unsafe { libc::sigfillset(&mut all) };
    // SAFETY: reads the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()) };
}

/// All signals, libc's own included, blocked until the value is dropped. For a few instructions.
#[must_use]
pub(crate) struct Blocked {
    before: u64,
}

impl Blocked {
    pub(crate) fn all() -> Blocked {
        let (all, mut before) = (u64::MAX, 0_u64);
        let (set, old) = (&raw const all as usize, &raw mut before as usize);
        let args = [libc::SIG_SETMASK as usize, set, old, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads and writes eight bytes each, which are ours.
        let _ = unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) };
        Blocked { before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let set = &raw const self.before as usize;
        let args = [libc::SIG_SETMASK as usize, set, 0, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads eight bytes.
        let _ = unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) };
    }
}
