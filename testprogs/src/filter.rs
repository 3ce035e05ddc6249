//! Filters of system calls, to take away what a program may miss elsewhere.

use std::io;

/// From here on the calls of these numbers fail with `errno` in every thread of this process.
///
/// # Panics
/// If the kernel refuses the filter.
pub fn refuse(calls: &[i64], errno: i32) {
    let rules: Vec<_> = calls.iter().map(|call| Rule::any(*call)).collect();
    install(&rules, libc::SECCOMP_RET_ERRNO | errno as u32);
}

/// From here on a call that any of the rules means ends the process with SIGSYS.
///
/// # Panics
/// If the kernel refuses the filter.
pub fn forbid(rules: &[Rule]) {
    install(rules, libc::SECCOMP_RET_KILL_PROCESS);
}

/// From here on a call that any of the rules means fails with `errno` in every thread.
///
/// # Panics
/// If the kernel refuses the filter.
pub fn refuse_some(rules: &[Rule], errno: i32) {
    install(rules, libc::SECCOMP_RET_ERRNO | errno as u32);
}

/// A system call, and what the lower half of one of its arguments looks like.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    call: i64,
    argument: u32,
    mask: u32,
    value: u32,
    /// An argument that is not 0, if that is asked for.
    given: Option<u32>,
}

impl Rule {
    /// With whatever arguments.
    #[must_use]
    pub const fn any(call: i64) -> Rule {
        Rule { call, argument: 0, mask: 0, value: 0, given: None }
    }

    /// If the argument of this index, counted from 0, has `value` in the bits of `mask`.
    #[must_use]
    pub const fn with(call: i64, argument: u32, mask: u32, value: u32) -> Rule {
        Rule { call, argument, mask, value, given: None }
    }

    /// And only if the argument of this index is no null pointer.
    #[must_use]
    pub const fn and_given(mut self, argument: u32) -> Rule {
        self.given = Some(argument);
        self
    }
}

fn install(rules: &[Rule], action: u32) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    // Where they are in what a filter is shown.
    const NUMBER: u32 = 0;
    const ARGUMENTS: u32 = 16;
    let op = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut filter = Vec::new();
    for rule in rules {
        filter.push(op(LOAD, NUMBER));
        // Otherwise over what follows, which is looked at from the end on.
        let mut rest = vec![op(RETURN, action)];
        if let Some(argument) = rule.given {
            rest.insert(0, libc::sock_filter { jt: 1, ..op(IF_EQUAL, 0) });
            rest.insert(0, op(LOAD, ARGUMENTS + 8 * argument));
        }
        let over = rest.len() as u8;
        rest.insert(0, libc::sock_filter { jf: over, ..op(IF_EQUAL, rule.value) });
        rest.insert(0, op(AND, rule.mask));
        rest.insert(0, op(LOAD, ARGUMENTS + 8 * rule.argument));
        let over = rest.len() as u8;
        filter.push(libc::sock_filter { jf: over, ..op(IF_EQUAL, rule.call as u32) });
        filter.append(&mut rest);
    }
    filter.push(op(RETURN, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the kernel copies the program.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}
