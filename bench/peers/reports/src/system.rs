//! What several cases ask of the system.

use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

thread_local! {
    static LOCAL: Cell<u64> = const { Cell::new(0) };
}

/// Where this thread's local is, by code that the compiler may merge with its neighbours'.
#[inline(always)]
pub fn local_inlined() -> usize {
    LOCAL.with(|local| std::ptr::from_ref(local) as usize)
}

/// The same, asked anew.
#[inline(never)]
pub fn local_anew() -> usize {
    black_box(LOCAL.with(|local| std::ptr::from_ref(local) as usize))
}

/// How often a task, after a yield, finds another thread's local at the place of its own.
pub fn wrong_locals(yields: impl Fn()) -> u64 {
    let mut wrong = 0;
    for _ in 0..2_000 {
        black_box(local_inlined());
        yields();
        wrong += u64::from(local_inlined() != local_anew());
    }
    wrong
}

/// How often a call that failed just now is said to have failed for another reason.
pub fn wrong_errors(of: usize, yields: impl Fn()) -> u64 {
    // Each second task fails in another way.
    let fail = || match of % 2 {
        // SAFETY: no such descriptor.
        0 => unsafe { libc::close(-1) },
        // SAFETY: a terminated name.
        _ => unsafe { libc::rmdir(c"/nowhere/at/all".as_ptr()) },
    };
    let right = if of.is_multiple_of(2) { libc::EBADF } else { libc::ENOENT };
    let mut wrong = 0;
    for _ in 0..2_000 {
        fail();
        black_box(io::Error::last_os_error());
        yields();
        fail();
        wrong += u64::from(io::Error::last_os_error().raw_os_error() != Some(right));
    }
    wrong
}

/// Uses all of the stack.
pub fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { black_box(recurse(depth + 1)) + room[3] }
}

/// Forks; the child runs `f` and ends; whether it ended, by itself, within ten seconds.
pub fn fork_and_wait(f: impl FnOnce()) {
    // SAFETY: what the child then does is what this is about.
    let child = unsafe { libc::fork() };
    if child == 0 {
        f();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let begin = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: writes a status.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            println!("child={status}");
            return;
        }
        if begin.elapsed() > Duration::from_secs(10) {
            // SAFETY: our own child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Address space: so much more than now.
pub fn limit_memory(more: u64) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("readable");
    let pages: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    let limit = libc::rlimit { rlim_cur: pages * 4096 + more, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads a limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

pub fn unlimit_memory() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads a limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// From now on no thread can be made. Needs root.
pub fn refuse_threads() {
    let user = 1_000_000 + std::process::id();
    let none = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: the kernel reads a limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &none) }, 0);
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::setresuid(user, user, user) }, 0, "needs root");
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "threads are refused");
}
