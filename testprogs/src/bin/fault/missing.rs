//! System calls that fail.

use crate::work::{self, Doses, print};
use gosched::{go, run};
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;
use testprogs::filter::{self, Rule};

/// What is refused under a name, and with which error.
fn refuse(what: &str) {
    const NOT_THERE: i32 = libc::ENOSYS;
    /// `MADV_GUARD_INSTALL` of Linux 6.13.
    const GUARD_INSTALL: Rule = Rule::with(libc::SYS_madvise, 2, u32::MAX, 102);
    match what {
        "membarrier" => filter::refuse(&[libc::SYS_membarrier], NOT_THERE),
        "rseq" => filter::refuse(&[libc::SYS_rseq], NOT_THERE),
        "clone3" => filter::refuse(&[libc::SYS_clone3], NOT_THERE),
        "arch_prctl" => filter::refuse(&[libc::SYS_arch_prctl], libc::EPERM),
        "epoll_pwait2" => filter::refuse(&[libc::SYS_epoll_pwait2], NOT_THERE),
        "prctl" => filter::refuse(&[libc::SYS_prctl], libc::EPERM),
        "affinity" => {
            let calls = [libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity];
            filter::refuse(&calls, libc::EPERM);
        }
        "setattr" => filter::refuse(&[libc::SYS_sched_setattr], libc::EPERM),
        "signals" => {
            let calls = [libc::SYS_rt_tgsigqueueinfo, libc::SYS_tgkill];
            filter::refuse(&calls, libc::EPERM);
        }
        "altstack" => filter::refuse(&[libc::SYS_sigaltstack], libc::EPERM),
        "robust" => filter::refuse(&[libc::SYS_get_robust_list], NOT_THERE),
        "advice" => filter::refuse(&[libc::SYS_madvise], libc::EINVAL),
        "guards" => filter::refuse_some(&[GUARD_INSTALL], libc::EINVAL),
        // What came with Linux 4.15 to 6.13.
        "old" => {
            filter::refuse_some(&[GUARD_INSTALL], libc::EINVAL);
            let calls = [
                libc::SYS_membarrier,
                libc::SYS_rseq,
                libc::SYS_clone3,
                libc::SYS_epoll_pwait2,
                libc::SYS_pidfd_open,
                libc::SYS_pidfd_send_signal,
                libc::SYS_openat2,
                libc::SYS_close_range,
                libc::SYS_statx,
                libc::SYS_faccessat2,
                libc::SYS_pkey_alloc,
            ];
            filter::refuse(&calls, NOT_THERE);
        }
        other => panic!("what is {other}?"),
    }
}

/// A filter outlives `exec`, so that libc finds the call missing from its own start on.
pub(crate) fn from_the_start(what: &str) {
    refuse(what);
    if what == "arch_prctl" {
        // libc can't begin without it.
        return work::all(&Doses::ALL);
    }
    let error = Command::new(env::current_exe().expect("known")).arg("plain").exec();
    panic!("{error}");
}

pub(crate) fn from_the_middle(what: &str) {
    work::quietly(&Doses::ALL);
    let what = what.to_owned();
    let other = std::thread::spawn(move || {
        gosched::thread::sleep(std::time::Duration::from_millis(1));
        refuse(&what);
    });
    work::quietly(&Doses::ALL);
    other.join().expect("no panic");
    work::all(&Doses::ALL);
}

/// Ends in the first call, or runs after all.
pub(crate) fn at_the_start(what: &str) {
    match what {
        "threads" => filter::refuse(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN),
        "poller" => filter::refuse(&[libc::SYS_epoll_create1], libc::EMFILE),
        "bell" => filter::refuse(&[libc::SYS_eventfd2], libc::EMFILE),
        "registration" => filter::refuse(&[libc::SYS_epoll_ctl], libc::ENOMEM),
        other => panic!("what is {other}?"),
    }
    print("sum", run(|| go(|| 1 + 1).join().expect("no panic")));
}

/// A clock that can be set is for telling the time: who waits by it waits for ever, or not at all,
/// when it is set.
pub(crate) fn clocks() {
    const FUTEX_REALTIME: u32 = libc::FUTEX_CLOCK_REALTIME as u32;
    const REALTIME: u32 = libc::CLOCK_REALTIME as u32;
    const ALL: u32 = u32::MAX;
    filter::forbid(&[
        // Without an end it says so as well, and means nothing by it.
        Rule::with(libc::SYS_futex, 1, FUTEX_REALTIME, FUTEX_REALTIME).and_given(3),
        Rule::with(libc::SYS_clock_nanosleep, 0, ALL, REALTIME),
        Rule::with(libc::SYS_timerfd_create, 0, ALL, REALTIME),
        Rule::with(libc::SYS_timer_create, 0, ALL, REALTIME),
        Rule::any(libc::SYS_setitimer),
        Rule::any(libc::SYS_alarm),
    ]);
    work::all(&Doses::ALL);
}
