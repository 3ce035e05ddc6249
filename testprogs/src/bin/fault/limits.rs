//! Limits that are reached.

use crate::work::{self, Doses, print};
use gosched::channel::bounded;
use gosched::net::UnixStream;
use gosched::thread::Builder;
use gosched::{blocking, go, run, thread};
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// As many descriptors as there may be are open while goroutines block, compute and wait.
pub(crate) fn files() {
    run(|| {
        set(libc::RLIMIT_NOFILE, 256);
        let mut open = Vec::new();
        let error = loop {
            match File::open("/dev/null") {
                Ok(file) => open.push(file),
                Err(error) => break error,
            }
        };
        print("filled", open.len());
        print("refused", error.raw_os_error().unwrap_or(0));
        let refused = UnixStream::pair().expect_err("there is none left");
        print("pair_refused", refused.raw_os_error().unwrap_or(0));
    });
    // New machines among them, that would like to open files about themselves.
    let held = run(|| {
        let mut open = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            open.push(file);
        }
        open
    });
    work::all(&Doses { files: false });
    drop(held);
    work::quietly(&Doses::ALL);
    print("recovered", 1);
}

/// At `ulimit -u`, where `clone` fails in the middle.
pub(crate) fn processes() {
    // SAFETY: no memory is passed.
    if unsafe { libc::geteuid() } != 0 {
        return println!("SKIPPED: only root can become a user without other processes");
    }
    // A number that nobody else has: the limit counts all threads of a user.
    let user = 1_000_000 + std::process::id();
    set(libc::RLIMIT_NPROC, 7);
    // SAFETY: no memory is passed; the only thread.
    if unsafe { libc::setresuid(user, user, user) } != 0 {
        return println!("SKIPPED: this namespace has no user {user}");
    }
    let blocked = run(|| {
        let all: Vec<_> = (0..60)
            .map(|i| {
                go(move || {
                    let sleep = || std::thread::sleep(Duration::from_millis(2));
                    if i % 2 == 0 { blocking(sleep) } else { sleep() }
                })
            })
            .collect();
        let count = all.len();
        all.into_iter().for_each(|g| g.join().expect("no panic"));
        count
    });
    print("blocked", blocked);
    let refused = std::thread::Builder::new().spawn(|| ()).err();
    let refused = refused.and_then(|error| error.raw_os_error());
    work::all(&Doses::ALL);
    print("refused", refused.unwrap_or(0));
}

/// Goroutines are made until there is no stack for the next one; those that have one go on, others
/// come and go beside them, and when there is memory again the rest get theirs.
pub(crate) fn memory() {
    const COUNT: usize = 400;
    static HAVE_STACKS: AtomicUsize = AtomicUsize::new(0);
    work::quietly(&Doses::ALL);
    let (done, over) = bounded::<()>(0);
    run(move || {
        // A little for the allocator.
        set(libc::RLIMIT_AS, address_space() + (48 << 20));
        let all: Vec<_> = (0..COUNT)
            .map(|i| {
                let over = over.clone();
                let work = move || {
                    HAVE_STACKS.fetch_add(1, SeqCst);
                    assert!(over.recv().is_err(), "nobody sends");
                    i
                };
                let builder = Builder::new().stack_size(8 << 20);
                builder.spawn(work).expect("it needs its stack later")
            })
            .collect();
        // The others get on meanwhile.
        for _ in 0..100 {
            assert_eq!(go(|| 1).join().expect("no panic"), 1);
            thread::sleep(Duration::from_micros(300));
        }
        print("have_stacks", HAVE_STACKS.load(SeqCst));
        set(libc::RLIMIT_AS, libc::RLIM_INFINITY);
        while HAVE_STACKS.load(SeqCst) < COUNT {
            thread::sleep(Duration::from_millis(1));
        }
        drop(done);
        let sum: usize = all.into_iter().map(|g| g.join().expect("no panic")).sum();
        print("sum", sum);
    });
    work::all(&Doses::ALL);
}

/// A goroutine whose stack is not to be had, and one that waits for it: nothing can go on until
/// somebody outside gives the process more, which standard input's end says here.
pub(crate) fn stackless() {
    // Threads need memory as well: for their stacks, and libc's allocator for an arena of theirs, on the
    // first occasion, which is more than the limit leaves.
    let (begin, has_begun) = std::sync::mpsc::channel();
    let outside = std::thread::spawn(move || {
        let mut text = Vec::with_capacity(64);
        begin.send(()).expect("somebody listens");
        std::io::stdin().read_to_end(&mut text).expect("it ends");
        set(libc::RLIMIT_AS, libc::RLIM_INFINITY);
    });
    has_begun.recv().expect("it says so");
    // Room for threads that are being made, of the runtime's too, but not for the stack below.
    set(libc::RLIMIT_AS, address_space() + (192 << 20));
    let builder = Builder::new().stack_size(256 << 20);
    let waits = builder.spawn(|| 1).expect("it needs its stack later");
    print("answer", waits.join().expect("no panic"));
    outside.join().expect("no panic");
}

/// `ulimit -s 64`: what libc gives threads that ask for nothing, and the first thread.
pub(crate) fn little_stack() {
    set(libc::RLIMIT_STACK, 64 << 10);
    let error = Command::new(env::current_exe().expect("known")).arg("plain").exec();
    panic!("{error}");
}

fn set(which: libc::__rlimit_resource_t, value: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes a limit.
    assert_eq!(unsafe { libc::getrlimit(which, &mut limit) }, 0);
    limit.rlim_cur = value.min(limit.rlim_max);
    // SAFETY: the kernel reads a limit.
    assert_eq!(unsafe { libc::setrlimit(which, &limit) }, 0);
}

/// Of this process, in bytes.
fn address_space() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("readable");
    let pages: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    pages * 4096
}
