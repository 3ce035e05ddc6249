//! What system calls show of signals: most nothing, those with a time-out EINTR, none an early end.

use crate::child::in_child;
use gosched::{go, run, runtime};
use std::arch::asm;
use std::io::Error;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);
static SENT: AtomicU64 = AtomicU64::new(0);

/// Sends SIGURG to every thread of the process, again and again. Nothing of ours explains it, so it
/// is ignored; but blocked calls are interrupted as they would be by one of ours.
fn storm() {
    // SAFETY: no preconditions.
    let (process, me) = (unsafe { libc::getpid() }, unsafe { libc::gettid() });
    while !STOP.load(SeqCst) {
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let tid: i32 = task.file_name().to_str().unwrap().parse().unwrap();
            if tid != me {
                // SAFETY: no memory is passed.
                unsafe { libc::syscall(libc::SYS_tgkill, process, tid, libc::SIGURG) };
                SENT.fetch_add(1, SeqCst);
            }
        }
    }
}

fn hog() {
    while !STOP.load(SeqCst) {
        (0..1000).for_each(|_| std::hint::spin_loop());
    }
}

#[track_caller]
fn well(result: isize) -> isize {
    assert!(result >= 0, "{}", Error::last_os_error());
    result
}

/// Enough of what may interrupt a call has happened.
fn is_over() -> bool {
    SENT.load(SeqCst) > 30_000
        && runtime::preemptions().in_place > 100
        && runtime::counters().undeclared_hand_offs > 100
}

fn pipe() -> [i32; 2] {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which are ours.
    well(unsafe { libc::pipe(ends.as_mut_ptr()) } as isize);
    ends
}

fn nap() {
    let (begin, nap) = (Instant::now(), Duration::from_micros(200));
    std::thread::sleep(nap);
    assert!(begin.elapsed() >= nap);
}

fn write_one(fd: i32) {
    // SAFETY: writes one byte.
    assert_eq!(well(unsafe { libc::write(fd, [7_u8].as_ptr().cast(), 1) }), 1);
}

fn read_one(fd: i32) {
    let mut byte = 0_u8;
    // SAFETY: reads one byte, which is ours.
    assert_eq!(well(unsafe { libc::read(fd, (&raw mut byte).cast(), 1) }), 1);
}

fn read_and_write() {
    let ends = pipe();
    let reader = go(move || {
        while !is_over() {
            read_one(ends[0]);
        }
    });
    while !reader.is_finished() {
        nap();
        write_one(ends[1]);
    }
    reader.join().unwrap();
}

fn receive_and_send() {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which are ours.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
    well(made as isize);
    const MUCH: usize = 1 << 20;
    let receiver = go(move || {
        let mut buffer = vec![0_u8; MUCH];
        loop {
            // SAFETY: receives into a buffer of ours.
            let got = unsafe { libc::recv(ends[0], buffer.as_mut_ptr().cast(), MUCH, 0) };
            if well(got) == 0 {
                return;
            }
        }
    });
    let buffer = vec![0_u8; MUCH];
    while !is_over() {
        // More than fits: it blocks. SAFETY: sends a buffer of ours.
        well(unsafe { libc::send(ends[1], buffer.as_ptr().cast(), MUCH, 0) });
        nap();
    }
    // SAFETY: ours, not used again.
    unsafe { libc::close(ends[1]) };
    receiver.join().unwrap();
}

fn accept_and_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = go(move || {
        while !is_over() {
            // SAFETY: no address is asked for.
            let got = unsafe { libc::accept(listener.as_raw_fd(), null_mut(), null_mut()) };
            // SAFETY: ours, not used again.
            unsafe { libc::close(well(got as isize) as i32) };
        }
    });
    while !acceptor.is_finished() {
        nap();
        // The listener may have gone.
        if let Err(error) = TcpStream::connect(address) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{error}");
        }
    }
    acceptor.join().unwrap();
}

fn files() {
    let path = std::env::temp_dir().join(format!("gosched-calls-{}", std::process::id()));
    std::fs::write(&path, "seven").unwrap();
    let users: Vec<_> = (0..3)
        .map(|_| {
            let path = path.clone();
            go(move || {
                while !is_over() {
                    let file = std::fs::File::open(&path).unwrap();
                    // SAFETY: no memory is passed.
                    well(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } as isize);
                    assert_eq!(std::fs::read_to_string(&path).unwrap(), "seven");
                    nap();
                }
            })
        })
        .collect();
    users.into_iter().for_each(|u| u.join().unwrap());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn most_calls_show_nothing() {
    in_child("procs=2,slice=100us", "calls::most_calls_show_nothing", || {
        let storm = std::thread::spawn(storm);
        run(|| {
            let hogs: Vec<_> = (0..2).map(|_| go(hog)).collect();
            let all = [read_and_write, receive_and_send, accept_and_connect, files].map(go);
            all.into_iter().for_each(|g| g.join().unwrap());
            STOP.store(true, SeqCst);
            hogs.into_iter().for_each(|h| h.join().unwrap());
        });
        storm.join().unwrap();
    });
}

const RESTARTS: u64 = 60;
const SHORT: Duration = Duration::from_millis(3);

fn short() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: SHORT.as_nanos() as i64 }
}

/// The error's number; 0 without one.
fn error_of(result: i32) -> i32 {
    if result < 0 { Error::last_os_error().raw_os_error().unwrap_or(-1) } else { 0 }
}

fn by_nanosleep() -> i32 {
    // SAFETY: reads one timespec; the rest is not asked for.
    error_of(unsafe { libc::nanosleep(&short(), null_mut()) })
}

/// Long against the time that a goroutine waits for its turn: an early end would show.
const LONG: Duration = Duration::from_millis(60);

/// Not through libc, where goroutines are left alone: this one is moved in the middle of it.
fn by_long_nanosleep() -> i32 {
    let long = libc::timespec { tv_sec: 0, tv_nsec: LONG.as_nanos() as i64 };
    let result: isize;
    // SAFETY: reads one timespec; the rest is not asked for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") libc::SYS_nanosleep as isize => result,
            in("rdi") &raw const long,
            in("rsi") 0,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    -result as i32
}

fn by_poll() -> i32 {
    // SAFETY: no entries.
    error_of(unsafe { libc::poll(null_mut(), 0, SHORT.as_millis() as i32) })
}

fn by_epoll() -> i32 {
    // SAFETY: no memory is passed.
    let epoll = unsafe { libc::epoll_create1(0) };
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: one event, which is ours.
    let result = unsafe { libc::epoll_wait(epoll, &mut event, 1, SHORT.as_millis() as i32) };
    let error = error_of(result);
    // SAFETY: ours, not used again.
    unsafe { libc::close(epoll) };
    error
}

fn by_futex() -> i32 {
    let (word, time) = (0_u32, short());
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word and a timespec, which are ours.
    let result =
        unsafe { libc::syscall(libc::SYS_futex, &raw const word, wait, 0, &raw const time) };
    match error_of(result as i32) {
        libc::ETIMEDOUT => 0,
        error => error,
    }
}

static FULL: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
static INTERRUPTED: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
const WAYS: [(fn() -> i32, Duration); 5] = [
    (by_nanosleep, SHORT),
    (by_poll, SHORT),
    (by_epoll, SHORT),
    (by_futex, SHORT),
    (by_long_nanosleep, LONG),
];

/// Waits in the given way until told to stop.
fn wait_again_and_again(way: usize) {
    let (wait, least) = WAYS[way];
    while !STOP.load(SeqCst) {
        let begin = Instant::now();
        let error = wait();
        if error == 0 {
            let lasted = begin.elapsed();
            assert!(lasted >= least, "way {way} ended after {lasted:?}");
            FULL[way].fetch_add(1, SeqCst);
        } else {
            assert_eq!(error, libc::EINTR, "way {way}");
            INTERRUPTED[way].fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn calls_with_a_time_out_show_eintr_and_never_end_early() {
    in_child(
        "procs=2,slice=100us",
        "calls::calls_with_a_time_out_show_eintr_and_never_end_early",
        || {
            run(|| {
                let hogs: Vec<_> = (0..2).map(|_| go(hog)).collect();
                let all = [0, 1, 2, 3].map(|way| go(move || wait_again_and_again(way)));
                let both =
                    |way: usize| FULL[way].load(SeqCst) > 5 && INTERRUPTED[way].load(SeqCst) > 5;
                let storm = std::thread::spawn(|| {
                    // SAFETY: no preconditions.
                    let me = unsafe { libc::gettid() };
                    while !STOP.load(SeqCst) {
                        std::thread::sleep(SHORT);
                        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
                            let tid: i32 = task.file_name().to_str().unwrap().parse().unwrap();
                            // SAFETY: no preconditions, no memory.
                            let process = unsafe { libc::getpid() };
                            if tid != me {
                                let call = libc::SYS_tgkill;
                                // SAFETY: as above.
                                unsafe { libc::syscall(call, process, tid, libc::SIGURG) };
                            }
                        }
                    }
                });
                while !(0..4).all(both) {
                    gosched::thread::sleep(SHORT);
                }
                STOP.store(true, SeqCst);
                all.into_iter().for_each(|g| g.join().unwrap());
                hogs.into_iter().for_each(|h| h.join().unwrap());
                storm.join().unwrap();
            });
        },
    );
}

/// Stops and continues this process as long as there is the file `until`.
fn stop_and_continue(until: &Path) -> Child {
    let script = "while [ -e $1 ] && kill -STOP $0; do kill -CONT $0; done";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, &std::process::id().to_string()]).arg(until);
    shell.stderr(Stdio::null()).spawn().expect("sh")
}

/// After SIGCONT the kernel restarts sleeps with what it keeps for the thread. Goroutines whose
/// calls are ended then, and that go on on other threads, must not take it along.
#[test]
fn no_sleep_ends_early_while_the_process_is_stopped_and_continued() {
    in_child(
        "procs=2,slice=100us,maxthreads=3",
        "calls::no_sleep_ends_early_while_the_process_is_stopped_and_continued",
        || {
            let name = format!("gosched-stops-{}", std::process::id());
            let until = std::env::temp_dir().join(name);
            std::fs::write(&until, "").unwrap();
            let mut shell = stop_and_continue(&until);
            run(|| {
                let ways = [0, 0, 1, 4, 4, 4];
                let all = ways.map(|way| go(move || wait_again_and_again(way)));
                let is_over = || {
                    let seen = runtime::preemptions();
                    seen.restarts >= RESTARTS && seen.forced >= 20 && FULL[0].load(SeqCst) >= 20
                };
                while !is_over() {
                    gosched::thread::sleep(SHORT);
                }
                STOP.store(true, SeqCst);
                all.into_iter().for_each(|g| g.join().unwrap());
            });
            std::fs::remove_file(until).unwrap();
            shell.wait().unwrap();
        },
    );
}
