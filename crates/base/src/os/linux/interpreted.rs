//! The system calls that Miri understands: it has no kernel, but libc's `syscall` for some.

use super::Errno;
use std::{io, ptr, thread};

/// As the real one, for futexes and whatever else locks need; all else is refused.
///
/// # Safety
/// * As for the real one.
pub unsafe fn syscall(number: i64, args: [usize; 6]) -> Result<usize, Errno> {
    let result = match number {
        libc::SYS_futex => {
            let word = ptr::with_exposed_provenance::<u32>(args[0]);
            let time = ptr::with_exposed_provenance::<libc::timespec>(args[3]);
            let (op, value, mask) = (args[1] as i32, args[2] as u32, args[5] as u32);
            let none = ptr::null::<u32>();
            // SAFETY: by the caller; each argument has the width that the call asks for.
            unsafe { libc::syscall(number, word, op, value, time, none, mask) }
        }
        // SAFETY: no memory is passed.
        libc::SYS_gettid => unsafe { libc::syscall(number) },
        libc::SYS_sched_yield => {
            thread::yield_now();
            0
        }
        _ => return Err(Errno(libc::ENOSYS)),
    };
    let error = || Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS));
    usize::try_from(result).map_err(|_| error())
}
