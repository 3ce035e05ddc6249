//! Limits of files and what is left over: `net_limits WHAT`, with `key=value` lines.
//!
//! * `churn COUNT`: opens and closes so many connections, and counts descriptors.
//! * `full tcp|unix`: accepts with too few files, until there are enough again.
//! * `children COUNT`: starts child processes with std's `Command` from goroutines that use sockets,
//!   and counts those that inherited something. Others compute, so that starters are stopped at any
//!   instruction.
//! * `quiet`: every goroutine waits for files, until another process has something to say.

use gosched::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::{env, fs};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let count = arguments.get(1).map_or(0, |count| count.parse().unwrap_or(0));
    match arguments[0].as_str() {
        "churn" => gosched::run(move || churn(count)),
        "full" if arguments[1] == "tcp" => gosched::run(full_tcp),
        "full" => gosched::run(full_unix),
        "children" => {
            // Some signal that the program starts with blocked: children inherit just that.
            block_signal(libc::SIGUSR2);
            gosched::run(move || children(count));
        }
        "quiet" => gosched::run(quiet),
        other => panic!("what is {other}?"),
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Those that are sockets: the runtime keeps files of its own about its threads.
fn sockets() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

fn churn(count: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // One connection, so that everything that stays open is open.
    let warm = |listener: &TcpListener| {
        let client = gosched::go(move || TcpStream::connect(address).unwrap());
        let (mut server, _) = listener.accept().unwrap();
        let mut client = client.join().unwrap();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
    };
    warm(&listener);
    let before = sockets();
    const WORKERS: usize = 8;
    let echoes = Arc::new(AtomicUsize::new(0));
    let server = gosched::go(move || {
        for _ in 0..count {
            let (mut stream, _) = listener.accept().unwrap();
            gosched::go(move || {
                let mut byte = [0];
                while stream.read(&mut byte).unwrap_or(0) > 0 {
                    let _ = stream.write_all(&byte);
                }
            });
        }
        listener
    });
    let clients: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let echoes = echoes.clone();
            gosched::go(move || {
                let mine = count / WORKERS + usize::from(worker < count % WORKERS);
                for _ in 0..mine {
                    let mut stream = TcpStream::connect(address).unwrap();
                    no_time_wait(&stream);
                    stream.write_all(b"x").unwrap();
                    stream.read_exact(&mut [0]).unwrap();
                    echoes.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let _listener = server.join().unwrap();
    // The servers' goroutines are ending.
    while gosched::runtime::num_goroutine() > 1 {
        gosched::thread::yield_now();
    }
    println!("echoes={}", echoes.load(SeqCst));
    println!("leaked={}", sockets().saturating_sub(before));
}

/// Closes with a reset: 100,000 connections in TIME_WAIT would use up the ports.
fn no_time_wait(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let (size, at) = (size_of_val(&at_once) as libc::socklen_t, (&raw const at_once).cast());
    // SAFETY: the kernel reads the option, whose size is stated.
    unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at, size) };
}

fn full_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    full(listener, |l| l.accept().map(|(stream, _)| stream), || TcpStream::connect(address));
}

fn full_unix() {
    let path = env::temp_dir().join(format!("gosched-full-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    full(listener, |l| l.accept().map(|(stream, _)| stream), || UnixStream::connect(&path));
    fs::remove_file(&path).unwrap();
}

fn full<L: Send + 'static, S: Send + 'static>(
    listener: L,
    accept: fn(&L) -> io::Result<S>,
    connect: impl Fn() -> io::Result<S>,
) {
    let waiter = gosched::go(move || {
        let first = accept(&listener).unwrap();
        (listener, first)
    });
    let first = connect().unwrap();
    let (listener, _served) = waiter.join().unwrap();
    // So many clients as there are files for, in the same process: the next accept has none. The
    // runtime opens files about its threads at any time, and may take all that are free.
    let mut files = descriptors() as u64 + 4;
    let mut clients = Vec::new();
    while clients.len() < 4 {
        set_file_limit(files);
        while let Ok(client) = connect() {
            clients.push(client);
        }
        files += 1;
    }
    let queued = clients.len();
    let mut refused = 0;
    let mut accepted = Vec::new();
    while accepted.len() < queued {
        match accept(&listener) {
            Ok(stream) => accepted.push(stream),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                refused += 1;
                // A client goes, its connection stays in the queue.
                if clients.pop().is_none() {
                    set_file_limit(files);
                    files += 1;
                }
            }
        }
    }
    // There is one for the next as well.
    set_file_limit(files + 4);
    drop((clients, accepted));
    // And it waits again as before.
    let next = gosched::go(move || accept(&listener).map(drop));
    let again = connect().unwrap();
    next.join().unwrap().unwrap();
    drop((first, again));
    println!("queued={queued}");
    println!("refused={refused}");
}

fn set_file_limit(files: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur = files;
    // SAFETY: the kernel reads the limit.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    assert_eq!(done, 0);
}

/// Nothing else is going on, so that this would be a deadlock if files did not count.
fn quiet() {
    let mut child = gosched::process::Command::new("sh")
        .args(["-c", "sleep 0.3; echo at last"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    println!("said={}", usize::from(text == "at last\n"));
}

fn block_signal(signal: i32) {
    // SAFETY: all-zero sets are valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigaddset(&mut set, signal) };
    // SAFETY: the set is ours.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
}

fn children(count: usize) {
    let mask: Arc<str> =
        signal_mask(&fs::read_to_string("/proc/thread-self/status").unwrap()).into();
    let is_over = Arc::new(AtomicBool::new(false));
    // Sockets come and go meanwhile.
    let traffic: Vec<_> = (0..4)
        .map(|_| {
            let is_over = is_over.clone();
            gosched::go(move || {
                let mut rounds = 0;
                while !is_over.load(SeqCst) {
                    let (mut a, mut b) = UnixStream::pair().unwrap();
                    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
                    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                    let address = listener.local_addr().unwrap();
                    let client = gosched::go(move || TcpStream::connect(address).unwrap());
                    listener.accept().unwrap().0.write_all(b"x").unwrap();
                    client.join().unwrap().read_exact(&mut [0]).unwrap();
                    let reader = gosched::go(move || a.read(&mut [0]).unwrap());
                    gosched::thread::yield_now();
                    b.write_all(b"x").unwrap();
                    reader.join().unwrap();
                    drop(udp);
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();
    // What computes makes the others' turns end, at any instruction of theirs.
    let hogs = [(); 2].map(|()| {
        let is_over = is_over.clone();
        gosched::go(move || {
            while !is_over.load(SeqCst) {
                std::hint::spin_loop();
            }
        })
    });
    let starters: Vec<_> = (0..4)
        .map(|starter| {
            let mine = count / 4 + usize::from(starter < count % 4);
            let mask = mask.clone();
            gosched::go(move || {
                let (mut files, mut masks) = (0, 0);
                for round in 0..mine as u32 {
                    // At any moment of its time slice.
                    (0..round % 64 * 500).for_each(|_| std::hint::spin_loop());
                    let status = output_of("cat", &["/proc/self/status"]);
                    masks += usize::from(signal_mask(&status) != *mask);
                    // Sockets, epolls, eventfds; what the parent was started with is not ours.
                    let open = output_of("ls", &["-l", "/proc/self/fd"]);
                    let is_ours =
                        |line: &&str| line.contains("socket:") || line.contains("anon_inode:");
                    files += open.lines().filter(is_ours).count();
                }
                (mine, files, masks)
            })
        })
        .collect();
    let (mut started, mut files, mut masks) = (0, 0, 0);
    for starter in starters {
        let (more, inherited, changed) = starter.join().unwrap();
        (started, files, masks) = (started + more, files + inherited, masks + changed);
    }
    is_over.store(true, SeqCst);
    let rounds: usize = traffic.into_iter().map(|g| g.join().unwrap()).sum();
    hogs.into_iter().for_each(|hog| hog.join().unwrap());
    println!("preempted={}", gosched::runtime::preemptions().in_place);
    println!("started={started}");
    println!("rounds={rounds}");
    println!("files_inherited={files}");
    println!("masks_changed={masks}");
    println!("mask_at_start={}", u64::from_str_radix(&mask, 16).unwrap());
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let child = Command::new(program).args(arguments).output().unwrap();
    assert!(child.status.success());
    String::from_utf8(child.stdout).unwrap()
}

fn signal_mask(status: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    line.unwrap().trim().to_owned()
}
