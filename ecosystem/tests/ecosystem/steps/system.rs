//! Processes, names, files, sockets: what std asks the system for.

use crate::carry::{Carriers, coroutine, hop, os_thread};
use crate::step::Step;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("process spawned", process_spawned),
    Step::inside("process forked, with ids set", process_forked),
    Step::inside("name resolution", name_resolution),
    Step::inside("files and directories", files_and_directories),
    Step::inside("TCP on the loopback", tcp),
    Step::inside("UDP on the loopback", udp),
    Step::inside("sched_getcpu follows affinity", cpu_follows_affinity),
    Step::outside("signal raised on a fiber", signal_raised),
    Step::outside("setgid beside blocked fibers", setgid_everywhere),
];

fn process_spawned() {
    let output = Command::new("echo").arg("hello").output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"hello\n".as_slice(), Some(0)));
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    hop();
    child.stdin.take().unwrap().write_all(b"through a pipe").unwrap();
    hop();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    hop();
    assert!(child.wait().unwrap().success());
    assert_eq!(text, "through a pipe");
    assert!(Command::new("/nonexistent/program").spawn().is_err());
}

/// `pre_exec`, and ids that change, make std fork instead of spawning; the child then runs on the
/// fiber.
fn process_forked() {
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]).uid(user).gid(group);
    hop();
    assert_eq!(command.status().unwrap().code(), Some(7));
    hop();
    // SAFETY: `raise`, `getpid` and the like are allowed after fork.
    unsafe {
        command.pre_exec(|| {
            let is_main = i64::from(libc::getpid()) == os_thread();
            if is_main { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        });
    }
    assert_eq!(command.status().unwrap().code(), Some(7));
}

fn name_resolution() {
    for _ in 0..3 {
        let addresses: Vec<_> = ("localhost", 80).to_socket_addrs().unwrap().collect();
        assert!(!addresses.is_empty() && addresses.iter().all(|a| a.ip().is_loopback()));
        hop();
    }
    assert!("name.invalid:1".to_socket_addrs().is_err());
}

fn files_and_directories() {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("gosched-files-{}-{}", std::process::id(), NUMBER.fetch_add(1, SeqCst));
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory).unwrap();
    for i in 0..10 {
        let mut file = fs::File::create_new(directory.join(i.to_string())).unwrap();
        hop();
        write!(file, "file {i}").unwrap();
    }
    let mut entries = fs::read_dir(&directory).unwrap();
    let mut names: Vec<_> = (&mut entries).take(4).map(|e| e.unwrap().file_name()).collect();
    hop();
    names.extend(entries.map(|e| e.unwrap().file_name()));
    names.sort();
    assert_eq!(names.len(), 10);
    let mut file = fs::File::open(directory.join("3")).unwrap();
    file.seek(SeekFrom::Start(5)).unwrap();
    hop();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "3");
    assert_eq!(fs::canonicalize(directory.join("../").join(&directory)).unwrap(), directory);
    fs::remove_dir_all(&directory).unwrap();
}

fn tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        word.reverse();
        stream.write_all(&word).unwrap();
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    hop();
    stream.write_all(b"abcd").unwrap();
    hop();
    let mut word = [0; 4];
    stream.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"dcba");
    server.join().unwrap();
}

fn udp() {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.send_to(b"datagram", b.local_addr().unwrap()).unwrap();
    hop();
    let mut buffer = [0; 64];
    let (bytes, from) = b.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..bytes], from), (b"datagram".as_slice(), a.local_addr().unwrap()));
    b.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    hop();
    assert_eq!(b.recv_from(&mut buffer).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
}

fn cpu_follows_affinity() {
    let before = affinity();
    let cpus = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: reads a bit of a set that the kernel filled.
    let allowed: Vec<usize> =
        cpus.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &before) }).collect();
    for &cpu in &allowed {
        // SAFETY: an all-zero set is the empty set.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        set_affinity(&one);
        // SAFETY: no arguments.
        assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
        set_affinity(&before);
        hop();
        // SAFETY: no arguments.
        assert!(allowed.contains(&(unsafe { libc::sched_getcpu() } as usize)));
    }
}

/// The mask of the OS thread that runs the caller.
fn affinity() -> libc::cpu_set_t {
    // SAFETY: an all-zero set is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a set of this size.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) }, 0);
    set
}

fn set_affinity(set: &libc::cpu_set_t) {
    // SAFETY: the kernel reads a set of this size.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(set), set) }, 0);
}

/// Where the handler of [`signal_raised`] ran.
static HANDLER_THREAD: AtomicI64 = AtomicI64::new(0);
static HANDLER_STACK: AtomicUsize = AtomicUsize::new(0);
static HANDLER_RUNS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note_signal(_: i32) {
    let local = 0_u8;
    HANDLER_STACK.store((&raw const local).addr(), SeqCst);
    HANDLER_THREAD.store(os_thread(), SeqCst);
    HANDLER_RUNS.fetch_add(1, SeqCst);
}

fn signal_raised(carriers: &Carriers) {
    // SAFETY: the handler only stores to atomics.
    let before = unsafe { libc::signal(libc::SIGUSR1, note_signal as *const () as usize) };
    assert_ne!(before, libc::SIG_ERR);
    for round in 1..=10 {
        carriers.run(move || {
            hop();
            // SAFETY: the signal has a handler.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            assert_eq!(HANDLER_RUNS.load(SeqCst), round);
            assert_eq!(HANDLER_THREAD.load(SeqCst), os_thread());
            let bounds = gosched_fiber::stack::bounds().unwrap();
            assert!((bounds.limit..bounds.top).contains(&HANDLER_STACK.load(SeqCst)));
        });
    }
    // SAFETY: puts back what was there.
    unsafe { libc::signal(libc::SIGUSR1, before) };
}

fn set_group() {
    // SAFETY: no memory; the group stays what it is.
    assert_eq!(unsafe { libc::setgid(libc::getgid()) }, 0);
}

/// libc signals every thread and waits for each, wherever it is: also for one that a fiber has
/// created, and for carriers whose fiber sits in a system call.
fn setgid_everywhere(carriers: &Carriers) {
    set_group();
    carriers.drive((0..3).map(|_| coroutine(|| (set_group(), hop(), set_group()).0)).collect());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut second = reader.try_clone().unwrap();
    let (started, starts) = std::sync::mpsc::channel();
    let blocked = thread::spawn(move || {
        let mut first = reader;
        let mut on_fiber = coroutine(move || {
            let spawned = thread::spawn({
                let started = started.clone();
                move || {
                    started.send(()).unwrap();
                    second.read_exact(&mut [0]).unwrap();
                }
            });
            started.send(()).unwrap();
            first.read_exact(&mut [0]).unwrap();
            spawned.join().unwrap();
        });
        assert!(on_fiber.resume());
    });
    starts.iter().take(2).for_each(drop);
    thread::sleep(Duration::from_millis(10));
    set_group();
    carriers.drive(vec![coroutine(|| (hop(), set_group()).1)]);
    writer.write_all(b"go").unwrap();
    blocked.join().unwrap();
}
