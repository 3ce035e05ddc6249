//! Filters of system calls, to take away what a program may miss elsewhere.

use std::io;

/// From here on the calls of these numbers fail with `errno` in every thread of this process.
///
/// # Panics
/// If the kernel refuses the filter.
pub fn refuse(calls: &[i64], errno: i32) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, the call's number at offset 0
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let op = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = vec![op(LOAD, 0, 0)];
    for (left, call) in (0..calls.len()).rev().zip(calls) {
        // Over the comparisons that are left and the permission.
        filter.push(op(IF_EQUAL, left as u8 + 1, *call as u32));
    }
    filter.push(op(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(op(RETURN, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the kernel copies the program.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}
