//! `fork`: the child has one thread, and libc believes that it is the one it finds through FS.

use crate::harness::{ALL, Mode, PATIENCE, in_each, moved, on_thread};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Forks; the child exits with what `f` returns. Returns the child's exit code.
fn in_child(f: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls `f` and exits; what it may not do in a child is the caller's matter.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // The harness's watchdog is a thread, and so not in the child.
        // SAFETY: no memory is passed.
        unsafe { libc::alarm(PATIENCE.as_secs() as u32 / 2) };
        let code = f();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    wait_for(pid)
}

/// Forks, and checks that the child could say something.
pub(crate) fn check_exit_code() {
    assert_eq!(in_child(|| 7), 7);
}

/// The exit code of child `pid`, or its signal as a negative number.
fn wait_for(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: writes one int, which is ours.
    let got = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(got, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

#[test]
fn the_child_of_a_coroutine_exits_as_it_likes() {
    in_each(ALL, "fork::the_child_of_a_coroutine_exits_as_it_likes", |_: Mode| {
        moved(check_exit_code);
    });
}

#[test]
fn the_child_of_a_coroutine_can_have_threads() {
    in_each(ALL, "fork::the_child_of_a_coroutine_can_have_threads", |_| {
        moved(|| {
            let code = in_child(|| std::thread::spawn(|| 5).join().unwrap_or(-1));
            assert_eq!(code, 5);
        });
    });
}

#[test]
fn threads_of_the_child_can_change_its_group() {
    in_each(ALL, "fork::threads_of_the_child_can_change_its_group", |_| {
        moved(|| {
            let code = in_child(|| {
                on_thread(|| {
                    // SAFETY: this only asks.
                    let gid = unsafe { libc::getgid() };
                    // SAFETY: no memory is passed.
                    unsafe { libc::setgid(gid) }
                })
            });
            assert_eq!(code, 0);
        });
    });
}

#[test]
fn a_coroutine_can_fork_beside_idle_and_suspended_ones() {
    in_each(ALL, "fork::a_coroutine_can_fork_beside_idle_and_suspended_ones", |_| {
        let mut others: Vec<_> =
            (0..20).map(|_| crate::harness::coroutine(gosched_fiber::suspend)).collect();
        others.iter_mut().for_each(|c| assert!(!c.resume()));
        others.iter_mut().step_by(2).for_each(|c| assert!(c.resume()));
        moved(check_exit_code);
        assert_eq!(in_child(|| 8), 8, "from a plain thread");
    });
}

#[test]
fn a_command_that_must_fork_runs() {
    in_each(ALL, "fork::a_command_that_must_fork_runs", |_| {
        moved(|| {
            let mut command = Command::new("/bin/true");
            // SAFETY: the closure does nothing.
            unsafe { command.pre_exec(|| Ok(())) };
            assert!(command.status().expect("a child").success());
        });
        moved(|| {
            // SAFETY: these only ask.
            let uid = unsafe { libc::getuid() };
            // SAFETY: as above.
            let gid = unsafe { libc::getgid() };
            let status = Command::new("/bin/true").uid(uid).gid(gid).status();
            assert!(status.expect("a child").success());
        });
    });
}

#[test]
fn a_child_that_spawns_without_fork_runs() {
    in_each(ALL, "fork::a_child_that_spawns_without_fork_runs", |_| {
        moved(|| assert!(Command::new("/bin/true").status().expect("a child").success()));
    });
}
