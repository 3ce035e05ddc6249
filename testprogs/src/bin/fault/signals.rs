//! Signals that come all the time.

use crate::work::{self, Doses, print};
use std::env;
use std::ffi::{c_int, c_void};
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use testprogs::signals::install;

/// Signals to be seen, at least.
const ENOUGH: u64 = 1_000;

static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // ORDERING: Relaxed; a count.
    SEEN.fetch_add(1, Relaxed);
}

/// Calls end with EINTR all the time, in whatever thread.
pub(crate) fn interrupted() {
    install(libc::SIGALRM, count, 0);
    every(200);
    let mut passes = 0;
    // ORDERING: Relaxed; a count.
    while SEEN.load(Relaxed) < ENOUGH {
        work::quietly(&Doses::ALL);
        passes += 1;
    }
    every(0);
    print("passes", passes);
    print("seen", SEEN.load(Relaxed));
}

/// Sends SIGALRM so often; 0 is never.
fn every(microseconds: i64) {
    let period = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: the kernel reads a timer.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, ptr::null_mut()) }, 0);
}

/// The runtime's own signal, from processes that have no business with it.
pub(crate) fn urgent() {
    // Somebody else's handler, installed first: what is not the runtime's is his.
    install(libc::SIGURG, count, libc::SA_RESTART);
    work::quietly(&Doses::ALL);
    let mut floods: Vec<Child> = (0..2).map(|_| start_flood()).collect();
    let mut passes = 0;
    // ORDERING: Relaxed; a count.
    while SEEN.load(Relaxed) < ENOUGH {
        work::quietly(&Doses::ALL);
        passes += 1;
    }
    for flood in &mut floods {
        flood.kill().expect("it runs");
        flood.wait().expect("it ends");
    }
    print("passes", passes);
    print("seen", SEEN.load(Relaxed));
}

fn start_flood() -> Child {
    let mut command = Command::new(env::current_exe().expect("known"));
    command.args(["flood", &std::process::id().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts")
}

/// Sends SIGURG to `process` and to each of its threads until it is gone.
pub(crate) fn flood(process: &str) {
    let process: libc::pid_t = process.parse().expect("a process");
    // SAFETY: no memory is passed.
    while unsafe { libc::kill(process, libc::SIGURG) } == 0 {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
        for thread in threads.flatten() {
            let thread: Option<i32> = thread.file_name().to_str().and_then(|n| n.parse().ok());
            // SAFETY: no memory is passed.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread.unwrap_or(0), libc::SIGURG) };
        }
    }
}
