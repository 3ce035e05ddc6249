//! `fork`, `exec` and `exit` in goroutines.

use crate::child::{in_child, is_child_of, output_of, text};
use gosched::channel::bounded;
use gosched::{go, run, runtime, thread};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

static STOP: AtomicBool = AtomicBool::new(false);

fn compute_until_stopped(times: u64) {
    let before = runtime::preemptions().in_place;
    while runtime::preemptions().in_place < before + times {
        std::hint::spin_loop();
    }
}

/// Allocates and computes.
fn hog() {
    let mut all = Vec::new();
    while !STOP.load(SeqCst) {
        all.push(vec![1_u8; 100]);
        if all.len() > 1000 {
            all.clear();
        }
    }
}

fn beside_hogs(f: impl FnOnce() + Send + 'static) {
    run(move || {
        let hogs: Vec<_> = (0..4).map(|_| go(hog)).collect();
        f();
        STOP.store(true, SeqCst);
        hogs.into_iter().for_each(|h| h.join().unwrap());
    });
}

/// Forks; the child runs `f`. What it wrote to its standard error, and how it ended.
fn in_fork(f: impl FnOnce()) -> (String, i32) {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which are ours.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child calls `f` and ends.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: no memory is passed. The watchdog, should the child hang.
        unsafe { libc::alarm(200) };
        // SAFETY: descriptors of ours.
        unsafe { libc::dup2(ends[1], 2) };
        f();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: ours, not used again.
    unsafe { libc::close(ends[1]) };
    // SAFETY: ours alone.
    let mut read = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    let mut said = String::new();
    read.read_to_string(&mut said).unwrap();
    let mut status = 0;
    // SAFETY: writes one int, which is ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    (said, status)
}

/// Every way into the runtime tells the child that there is none.
fn refused() {
    beside_hogs(|| {
        let uses: [fn(); 5] = [
            || drop(go(|| ())),
            || run(|| ()),
            || {
                let (_tx, rx) = bounded::<()>(0);
                let _ = rx.recv();
            },
            || {
                runtime::gomaxprocs(3);
            },
            || drop(thread::Builder::new().spawn(|| ())),
        ];
        for (number, used) in uses.into_iter().enumerate() {
            compute_until_stopped_or_frozen();
            let (said, status) = in_fork(used);
            assert!(said.contains("child of a fork"), "{number}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(libc::WIFSIGNALED(status), "{number}: {status}");
            assert_eq!(libc::WTERMSIG(status), libc::SIGABRT, "{number}");
        }
        // What needs no runtime works.
        let (said, status) = in_fork(|| {
            let thread = std::thread::spawn(|| std::thread::current().id());
            assert_ne!(thread.join().unwrap(), std::thread::current().id());
            assert!(!runtime::is_goroutine());
        });
        assert_eq!((said.as_str(), status), ("", 0));
    });
}

fn compute_until_stopped_or_frozen() {
    let stops = || {
        let seen = runtime::preemptions();
        seen.in_place + seen.frozen
    };
    let before = stops();
    while stops() < before + 2 {
        std::hint::spin_loop();
    }
}

#[test]
fn a_forks_child_is_told_that_it_has_no_runtime() {
    in_child(
        "procs=2,slice=100us",
        "processes::a_forks_child_is_told_that_it_has_no_runtime",
        refused,
    );
}

#[test]
fn and_with_shared_thread_locals_as_well() {
    in_child(
        "procs=2,slice=100us,tls=shared",
        "processes::and_with_shared_thread_locals_as_well",
        refused,
    );
}

#[test]
fn programs_are_started_by_fork_and_by_spawn() {
    in_child("procs=2,slice=100us", "processes::programs_are_started_by_fork_and_by_spawn", || {
        beside_hogs(|| {
            for n in 0..12 {
                compute_until_stopped(2);
                let mut echo = Command::new("echo");
                echo.arg(n.to_string());
                if n % 2 == 0 {
                    // SAFETY: does nothing; std forks because of it.
                    unsafe { echo.pre_exec(|| Ok(())) };
                }
                let output = echo.output().unwrap();
                assert!(output.status.success());
                assert_eq!(text(&output.stdout), format!("{n}\n"));
            }
        });
    });
}

/// The process becomes another program while its threads are being signalled. `true` succeeds.
#[test]
fn the_process_becomes_another_program() {
    in_child("procs=2,slice=100us", "processes::the_process_becomes_another_program", || {
        beside_hogs(|| {
            compute_until_stopped(5);
            panic!("{}", Command::new("true").exec());
        });
    });
}

extern "C" fn at_exit() {
    // Computes, allocates and prints, as destructors of libraries do.
    let before = TURNS.load(SeqCst);
    while TURNS.load(SeqCst) < before + 3 {
        std::hint::spin_loop();
    }
    println!("at exit: {}", vec![1; 100].len());
}

static TURNS: AtomicU64 = AtomicU64::new(0);

fn print_and_count() {
    loop {
        println!("line of a goroutine that is stopped while it prints");
        TURNS.fetch_add(1, SeqCst);
    }
}

/// At any moment, on a small stack, with goroutines that are stopped holding libc's and std's locks.
#[test]
fn a_goroutine_ends_the_process() {
    const TEST: &str = "processes::a_goroutine_ends_the_process";
    if !is_child_of(TEST) {
        for _ in 0..12 {
            let ended = output_of("procs=2,slice=100us", TEST);
            let (out, err) = (text(&ended.stdout), text(&ended.stderr));
            assert_eq!(ended.status.code(), Some(7), "{err}");
            assert!(out.contains("at exit: 100"), "{out}\n{err}");
        }
        return;
    }
    // SAFETY: a function that unwinds not.
    assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
    run(|| {
        let _printers: Vec<_> = (0..4).map(|_| go(print_and_count)).collect();
        let _hogs: Vec<_> = (0..2).map(|_| go(hog)).collect();
        let moment = u64::from(std::process::id() % 23);
        let ends = thread::Builder::new().stack_size(32 << 10).spawn(move || {
            compute_until_stopped(moment);
            let _ = std::io::stdout().flush();
            std::process::exit(7);
        });
        drop(ends.unwrap().join());
    });
}
