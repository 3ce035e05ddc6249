//! System calls beside hogs whose slice is 100 us: which of them say EINTR, and whether any ends
//! early. Prints `key=value` lines.

use gosched::{go, run, runtime, thread};
use std::ffi::CString;
use std::io::{Error, pipe};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use testprogs::random::Random;
use testprogs::registers::{FLAGS_ANY, Held};

/// Rounds of every call.
const ROUNDS: usize = 150;
/// How many preemptions are to be seen beside them: where CPUs are taken away the calls may have to
/// be made all over again, and the process is killed if that is of no use.
const PREEMPTIONS_MIN: u64 = 300;
const SHORT: Duration = Duration::from_millis(2);

/// Calls, those of them that goroutines were interrupted in, and timed ones that ended early.
static CALLS: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static TIMED: AtomicU64 = AtomicU64::new(0);
static TIMED_INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);

fn main() {
    gosched::Config::new().slice(Duration::from_micros(100)).start().expect("it is the first");
    run(|| {
        let over = Arc::new(AtomicBool::new(false));
        let hogs: Vec<_> = (0..3).map(|i| hog(i, over.clone())).collect();
        let mut passes = 0;
        while passes == 0 || !is_enough() {
            let all: [fn(); 6] = [pipes, sockets, files, std_sleeps, timed_polls, timed_sleeps];
            all.map(go).into_iter().for_each(|caller| caller.join().expect("no panic"));
            passes += 1;
        }
        println!("passes={passes}");
        over.store(true, Relaxed);
        hogs.into_iter().for_each(|hog| hog.join().expect("no panic"));
    });
    let figures = [
        ("calls", &CALLS),
        ("interrupted", &INTERRUPTED),
        ("timed", &TIMED),
        ("timed_interrupted", &TIMED_INTERRUPTED),
        ("early", &EARLY),
    ];
    figures.iter().for_each(|(name, count)| println!("{name}={}", count.load(Relaxed)));
    println!("preemptions={}", runtime::preemptions().in_place);
    println!("undeclared_hand_offs={}", runtime::counters().undeclared_hand_offs);
}

fn is_enough() -> bool {
    runtime::preemptions().in_place > PREEMPTIONS_MIN
        && runtime::counters().undeclared_hand_offs > 0
}

fn hog(seed: u64, over: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    go(move || {
        while !over.load(Relaxed) {
            Held::random(&mut Random::new(seed), FLAGS_ANY).keep(100_000);
        }
    })
}

/// The result of a call without a time-out; one that was interrupted is made again.
fn call(mut f: impl FnMut() -> isize) -> isize {
    CALLS.fetch_add(1, Relaxed);
    loop {
        match (f(), Error::last_os_error().raw_os_error()) {
            (-1, Some(libc::EINTR)) => INTERRUPTED.fetch_add(1, Relaxed),
            (-1, error) => panic!("{error:?}"),
            (result, _) => return result,
        };
    }
}

/// A call with a time-out that nothing but time ends.
fn timed(f: impl FnOnce() -> isize) {
    TIMED.fetch_add(1, Relaxed);
    let start = Instant::now();
    let (result, error) = (f(), Error::last_os_error().raw_os_error());
    let timed_out = result == 0 || error == Some(libc::ETIMEDOUT);
    match error {
        Some(libc::EINTR) if result == -1 => TIMED_INTERRUPTED.fetch_add(1, Relaxed),
        _ if !timed_out => panic!("{error:?}"),
        _ => EARLY.fetch_add(u64::from(start.elapsed() < SHORT), Relaxed),
    };
}

fn read(fd: RawFd) -> u8 {
    let mut byte = 0_u8;
    // SAFETY: room for one byte.
    assert_eq!(call(|| unsafe { libc::read(fd, (&raw mut byte).cast(), 1) }), 1);
    byte
}

fn write(fd: RawFd, byte: u8) {
    // SAFETY: one byte.
    assert_eq!(call(|| unsafe { libc::write(fd, (&raw const byte).cast(), 1) }), 1);
}

/// Two goroutines read what the other one writes after having computed.
fn pipes() {
    let (here, there) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
    let ends = (there.0.as_raw_fd(), here.1.as_raw_fd());
    let other = go(move || {
        for _ in 0..ROUNDS {
            let byte = read(ends.0);
            Held::random(&mut Random::new(1), FLAGS_ANY).keep(50_000);
            write(ends.1, byte.wrapping_add(1));
        }
    });
    for i in 0..ROUNDS {
        write(there.1.as_raw_fd(), i as u8);
        assert_eq!(read(here.0.as_raw_fd()), (i as u8).wrapping_add(1));
    }
    other.join().expect("no panic");
}

/// accept, connect, send, recv, by libc: std repeats what was interrupted.
fn sockets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let server = go(move || {
        for _ in 0..ROUNDS {
            let fd = listener.as_raw_fd();
            // SAFETY: the address is not wanted.
            let fd = call(|| unsafe { libc::accept(fd, null_mut(), null_mut()) } as isize);
            let mut byte = 0_u8;
            let at = (&raw mut byte).cast();
            // SAFETY: room for one byte.
            assert_eq!(call(|| unsafe { libc::recv(fd as RawFd, at, 1, 0) }), 1);
            Held::random(&mut Random::new(1), FLAGS_ANY).keep(50_000);
            // SAFETY: one byte.
            assert_eq!(call(|| unsafe { libc::send(fd as RawFd, at, 1, 0) }), 1);
            // SAFETY: open, and ours.
            call(|| unsafe { libc::close(fd as RawFd) } as isize);
        }
    });
    for i in 0..ROUNDS {
        // SAFETY: no memory is passed.
        let fd = call(|| unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) } as isize);
        let fd = fd as RawFd;
        // SAFETY: all zeroes is a value of this type.
        let mut address: libc::sockaddr_in = unsafe { zeroed() };
        address.sin_family = libc::AF_INET as u16;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let (at, length) = ((&raw const address).cast(), size_of_val(&address) as u32);
        // SAFETY: an address of that length.
        call(|| unsafe { libc::connect(fd, at, length) } as isize);
        let (sent, mut got) = (i as u8, 0_u8);
        // SAFETY: one byte.
        assert_eq!(call(|| unsafe { libc::send(fd, (&raw const sent).cast(), 1, 0) }), 1);
        // SAFETY: room for one byte.
        assert_eq!(call(|| unsafe { libc::recv(fd, (&raw mut got).cast(), 1, 0) }), 1);
        assert_eq!(got, sent);
        // SAFETY: open, and ours.
        call(|| unsafe { libc::close(fd) } as isize);
    }
    server.join().expect("no panic");
}

fn files() {
    let path = std::env::temp_dir().join(format!("gosched-hazard-{}", std::process::id()));
    let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero in it");
    for i in 0..ROUNDS {
        let flags = libc::O_CREAT | libc::O_RDWR;
        // SAFETY: a terminated string.
        let fd = call(|| unsafe { libc::open(name.as_ptr(), flags, 0o600) } as isize) as RawFd;
        write(fd, i as u8);
        // SAFETY: no memory is passed.
        call(|| unsafe { libc::fsync(fd) } as isize);
        // SAFETY: no memory is passed.
        call(|| unsafe { libc::lseek(fd, 0, libc::SEEK_SET) } as isize);
        assert_eq!(read(fd), i as u8);
        // SAFETY: open, and ours.
        call(|| unsafe { libc::close(fd) } as isize);
        // SAFETY: a terminated string.
        call(|| unsafe { libc::unlink(name.as_ptr()) } as isize);
    }
}

fn std_sleeps() {
    for _ in 0..ROUNDS {
        let start = Instant::now();
        std::thread::sleep(SHORT);
        EARLY.fetch_add(u64::from(start.elapsed() < SHORT), Relaxed);
    }
}

/// poll, epoll_wait, select.
fn timed_polls() {
    let (reader, _writer) = pipe().expect("a pipe");
    let ms = SHORT.as_millis() as i32;
    // SAFETY: no memory is passed.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    for _ in 0..ROUNDS {
        let mut wanted = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one record.
        timed(|| unsafe { libc::poll(&mut wanted, 1, ms) } as isize);
        // SAFETY: all zeroes is a value of this type.
        let mut event: libc::epoll_event = unsafe { zeroed() };
        // SAFETY: room for one event.
        timed(|| unsafe { libc::epoll_wait(epoll, &mut event, 1, ms) } as isize);
        let mut time = libc::timeval { tv_sec: 0, tv_usec: i64::from(ms) * 1_000 };
        // SAFETY: no set is passed.
        timed(|| unsafe { libc::select(0, null_mut(), null_mut(), null_mut(), &mut time) } as isize);
    }
}

/// nanosleep, and a futex with a time-out.
fn timed_sleeps() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(SHORT.subsec_nanos()) };
    for _ in 0..ROUNDS {
        // SAFETY: a time of ours.
        timed(|| unsafe { libc::nanosleep(&time, null_mut()) } as isize);
        let (word, number) = (0_u32, libc::SYS_futex);
        // SAFETY: a word and a time of ours.
        let wait = || unsafe {
            libc::syscall(
                number,
                &raw const word,
                libc::FUTEX_WAIT,
                0,
                &raw const time,
                null::<u32>(),
                0,
            )
        };
        timed(|| wait() as isize);
    }
}
