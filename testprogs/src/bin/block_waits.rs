//! What threads wait for that is no blocking call: a CPU, a signal to go on, a page, a thaw. The
//! first argument is the kind. Prints `key=value` lines, or `SKIPPED: ` and a reason.

use gosched::{blocking, go, run, runtime, thread};
use std::cell::UnsafeCell;
use std::env;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testprogs::filter;

fn main() {
    let kind = env::args().nth(1).expect("a kind");
    run(move || match kind.as_str() {
        "compute" => compute(),
        "fault" => fault(),
        "mutex" => mutex(),
        "contend" => contend(),
        "blind" => blind(),
        "asleep" => asleep(),
        "idle" => idle(),
        other => panic!("no kind {other}"),
    });
}

fn print(key: &str, value: impl std::fmt::Display) {
    println!("{key}={value}");
}

/// Computes on every processor until standard input ends, without a system call. Whatever is done
/// to the process meanwhile, no goroutine of it blocks.
fn compute() {
    static OVER: AtomicBool = AtomicBool::new(false);
    let reader = std::thread::spawn(|| {
        io::stdin().read_to_end(&mut Vec::new()).expect("it ends");
        // ORDERING: Relaxed; there is nothing else to see.
        OVER.store(true, Relaxed);
    });
    let (before, pages_before) = (runtime::counters(), pages_from_disk());
    let hogs: Vec<_> = (0..2 * runtime::gomaxprocs(0))
        .map(|_| {
            go(move || {
                let mut rounds = 0_u64;
                // ORDERING: Relaxed; as above.
                while !OVER.load(Relaxed) {
                    rounds += black_box((0..10_000_u64).fold(1, |x, i| x ^ (x << 1) ^ i)) & 1 | 1;
                    thread::yield_now();
                }
                rounds
            })
        })
        .collect();
    println!("ready");
    let rounds: u64 = hogs.into_iter().map(|g| g.join().unwrap()).sum();
    print("undeclared", runtime::counters().undeclared_hand_offs - before.undeclared_hand_offs);
    print("pages_from_disk", pages_from_disk() - pages_before);
    print("rounds", rounds);
    reader.join().unwrap();
}

/// Page faults of this process that had to wait for a disk.
fn pages_from_disk() -> i64 {
    usage().ru_majflt
}

/// A goroutine touches a page that comes when another one has run, with one processor. Hangs if that
/// one has to wait for the page.
fn fault() {
    const PAGE: usize = 4096;
    let Ok(faults) = UserFaults::open() else {
        return println!("SKIPPED: userfaultfd is not permitted ({})", io::Error::last_os_error());
    };
    let page = map(PAGE);
    if let Err(error) = faults.register(page, PAGE) {
        return println!("SKIPPED: userfaultfd can't watch memory ({error})");
    }
    runtime::gomaxprocs(1);
    let (touched, is_touched) = channel();
    let (ran, has_run) = channel();
    let helper = std::thread::spawn(move || {
        faults.wait();
        touched.send(()).expect("somebody listens");
        has_run.recv().expect("it runs");
        faults.answer(page, PAGE, 7);
    });
    let reader = go(move || {
        // SAFETY: mapped, one byte.
        unsafe { (page as *const u8).read_volatile() }
    });
    let other = go(move || {
        // Declared, so that the processor is free for the one that touches the page.
        blocking(|| is_touched.recv()).expect("it is touched");
        ran.send(()).expect("somebody listens");
    });
    other.join().unwrap();
    print("byte", reader.join().unwrap());
    helper.join().unwrap();
}

fn map(bytes: usize) -> usize {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory.
    let page = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    page as usize
}

/// `userfaultfd`, as far as this needs it.
struct UserFaults(i32);

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

impl UserFaults {
    fn open() -> io::Result<UserFaults> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let faults = (fd >= 0).then_some(UserFaults(fd as i32)).ok_or(io::ErrorKind::Other)?;
        let mut api = Api { api: 0xaa, features: 0, ioctls: 0 };
        faults.ioctl(0xc018_aa3f, (&raw mut api).cast())?;
        Ok(faults)
    }

    fn register(&self, start: usize, len: usize) -> io::Result<()> {
        let (start, len) = (start as u64, len as u64);
        let mut register = Register { start, len, mode: 1, ioctls: 0 };
        self.ioctl(0xc020_aa00, (&raw mut register).cast())
    }

    fn ioctl(&self, request: u64, data: *mut libc::c_void) -> io::Result<()> {
        // SAFETY: the data is what the request says.
        let done = unsafe { libc::ioctl(self.0, request, data) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn wait(&self) {
        let mut message = [0_u64; 4];
        // SAFETY: reads one message.
        let read = unsafe { libc::read(self.0, message.as_mut_ptr().cast(), 32) };
        assert_eq!(read, 32);
    }

    fn answer(&self, page: usize, len: usize, byte: u8) {
        let content = vec![byte; len];
        let (to, from, len) = (page as u64, content.as_ptr() as u64, len as u64);
        let mut copy = Copy { to, from, len, mode: 0, copied: 0 };
        self.ioctl(0xc028_aa03, (&raw mut copy).cast()).expect("the page is missing");
    }
}

/// One of 100 goroutines keeps a std Mutex across a yield; with one processor.
fn mutex() {
    runtime::gomaxprocs(1);
    let before = runtime::counters();
    let shared = Arc::new(Mutex::new(0));
    let all: Vec<_> = (0..100)
        .map(|i| {
            let shared = shared.clone();
            go(move || {
                let mut count = shared.lock().unwrap();
                if i % 10 == 0 {
                    thread::yield_now();
                    thread::sleep(Duration::from_micros(100));
                }
                *count += 1;
            })
        })
        .collect();
    all.into_iter().for_each(|g| g.join().unwrap());
    print("count", shared.lock().unwrap());
    print("futex_waits", (runtime::counters().futex_waits > before.futex_waits) as u32);
}

/// 1,000 goroutines and one std Mutex that is kept across yields.
fn contend() {
    let shared = Arc::new(Mutex::new(0));
    let most = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let all: Vec<_> = (0..1_000)
        .map(|_| {
            let (shared, most) = (shared.clone(), most.clone());
            go(move || {
                for _ in 0..20 {
                    let mut count = shared.lock().unwrap();
                    *count += 1;
                    if *count % 16 == 0 {
                        thread::yield_now();
                        // ORDERING: Relaxed; a statistic.
                        most.fetch_max(runtime::counters().machines, Relaxed);
                    }
                }
            })
        })
        .collect();
    all.into_iter().for_each(|g| g.join().unwrap());
    print("count", shared.lock().unwrap());
    // ORDERING: Relaxed; all have ended.
    print("machines_max", most.load(Relaxed));
    print("ms", start.elapsed().as_millis());
}

/// From here on the monitor can neither open nor read files of /proc.
fn hide_proc() {
    filter::refuse(&[libc::SYS_openat, libc::SYS_pread64], libc::EACCES);
    assert!(std::fs::File::open("/proc/self/stat").is_err(), "files are refused");
}

/// With one processor, and /proc out of sight: goroutines read from pipes that others write to, who
/// compute in between so that they may be taken for sleepers, or sleep in the runtime.
fn blind() {
    const PAIRS: u64 = 4;
    const BYTES: usize = 3;
    runtime::gomaxprocs(1);
    hide_proc();
    let before = runtime::counters();
    let all: Vec<_> = (0..PAIRS)
        .map(|i| {
            let (mut reader, mut writer) = io::pipe().expect("a pipe");
            let read = go(move || {
                let mut bytes = [0; BYTES];
                reader.read_exact(&mut bytes).expect("the bytes come");
                u64::from(bytes == [7; BYTES])
            });
            let written = go(move || {
                for _ in 0..BYTES {
                    if i % 2 == 0 {
                        black_box((0..3_000_000_u64).fold(1, |x, i| x ^ (x << 1) ^ i));
                    }
                    thread::sleep(Duration::from_micros(100));
                    writer.write_all(&[7]).expect("there is room");
                }
            });
            (read, written)
        })
        .collect();
    let mut right = 0;
    for (read, written) in all {
        right += read.join().unwrap();
        written.join().unwrap();
    }
    print("right", right);
    print("undeclared", runtime::counters().undeclared_hand_offs - before.undeclared_hand_offs);
}

/// Nobody will ever wake anybody, but two sleep in locks that the runtime can't see through.
fn asleep() {
    static STD: Mutex<()> = Mutex::new(());
    static LIBC: LibcLock = LibcLock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
    static IS_HELD: AtomicBool = AtomicBool::new(false);
    let named = |name: &str, f: fn()| {
        let builder = thread::Builder::new().name(name.into());
        builder.spawn(f).expect("a goroutine starts")
    };
    let holder = named("holder", || {
        let _kept = STD.lock().unwrap();
        LIBC.lock();
        // ORDERING: Relaxed; the locks order what they guard.
        IS_HELD.store(true, Relaxed);
        loop {
            thread::park();
        }
    });
    // ORDERING: Relaxed; as above.
    while !IS_HELD.load(Relaxed) {
        thread::yield_now();
    }
    let in_std = named("in-std", || drop(STD.lock().unwrap()));
    let in_libc = named("in-libc", || LIBC.lock());
    for g in [holder, in_std, in_libc] {
        g.join().unwrap();
    }
}

struct LibcLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: libc's lock is for all threads; a static never moves.
unsafe impl Sync for LibcLock {}

impl LibcLock {
    fn lock(&self) {
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }
}

/// A hundred goroutines are parked, and main with them, at the end with a timer that is far away.
/// How often any thread of the process was woken in 2 s. On a slow machine it may take a while until
/// all are still; who is never still is so for all of the patience.
fn idle() {
    const STILL: i64 = 10;
    const PATIENCE: Duration = Duration::from_secs(100);
    for _ in 0..100 {
        let _detached = go(thread::park);
    }
    let main = thread::current();
    for key in ["switches_without_timer", "switches_with_timer"] {
        let main = main.clone();
        // A plain thread, so that there is no deadlock.
        let watcher = std::thread::spawn(move || {
            let begun = Instant::now();
            loop {
                std::thread::sleep(Duration::from_millis(500));
                let before = switches();
                std::thread::sleep(Duration::from_secs(2));
                let during = switches() - before;
                if during <= STILL || begun.elapsed() > PATIENCE {
                    main.unpark();
                    return during;
                }
            }
        });
        thread::park();
        print(key, watcher.join().unwrap());
        let _far = go(|| thread::sleep(Duration::from_secs(3600)));
    }
}

/// How often threads of this process have gone to sleep.
fn switches() -> i64 {
    usage().ru_nvcsw
}

fn usage() -> libc::rusage {
    // SAFETY: all-zero is a valid record.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes one record, which is ours.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) }, 0);
    usage
}
