//! Many idle connections with a goroutine each: `net_idle COUNT`. The clients are in a second
//! process, the program itself as `net_idle clients PORT COUNT`.
//!
//! Prints `key=value` lines: threads before and with the connections, bytes a connection, and how
//! many answered when they were called at last.

use gosched::net::{TcpListener, TcpStream};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::{env, fs};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    raise_file_limit();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["clients", port, count] => clients(port.parse().unwrap(), count.parse().unwrap()),
        [count] => gosched::run({
            let count = count.parse().unwrap();
            move || serve(count)
        }),
        _ => panic!("usage: net_idle COUNT"),
    }
}

/// Connects, waits for a line on standard input, sends a byte on each connection and counts the
/// answers. Plain blocking std.
fn clients(port: u16, count: usize) {
    let mut streams: Vec<_> = (0..count)
        .map(|i| {
            // A loopback address has some 28,000 ports for its connections.
            let address = SocketAddr::from(([127, 0, 0, 1 + (i / 20_000) as u8], port));
            std::net::TcpStream::connect(address).expect("connects")
        })
        .collect();
    println!("connected");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    streams.iter_mut().for_each(|stream| stream.write_all(b"?").unwrap());
    let mut answers = 0;
    for stream in &mut streams {
        stream.read_exact(&mut [0]).unwrap();
        answers += 1;
    }
    println!("{answers}");
}

fn serve(count: usize) {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The runtime is warm before the first look: some goroutines have run.
    (0..1000).map(|_| gosched::go(|| ())).for_each(|g| g.join().unwrap());
    let (threads_before, rss_before) = (threads(), rss_bytes());

    let mut client = Command::new(env::current_exe().unwrap())
        .args(["clients", &port.to_string(), &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let waiting = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..count)
        .map(|_| {
            let (stream, _) = listener.accept().unwrap();
            let waiting = waiting.clone();
            gosched::go(move || answer(stream, &waiting))
        })
        .collect();
    let mut out = BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "connected\n");
    // Until all wait: the last ones may be on their way into the wait, which costs no more.
    while waiting.load(SeqCst) < count {
        gosched::thread::yield_now();
    }
    let (threads_with, rss_with) = (threads(), rss_bytes());
    let counted = gosched::runtime::counters();
    let handed_off = counted.declared_hand_offs + counted.undeclared_hand_offs;
    client.stdin.take().unwrap().write_all(b"\n").unwrap();
    line.clear();
    out.read_line(&mut line).unwrap();
    let answered: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(client.wait().unwrap().success());
    println!("connections={count}");
    println!("threads_before={threads_before}");
    println!("threads_with={threads_with}");
    println!("handed_off={handed_off}");
    println!("bytes_per_connection={}", rss_with.saturating_sub(rss_before) / count);
    println!("answered={answered}");
    println!("answers_seen={}", line.trim());
}

fn answer(mut stream: TcpStream, waiting: &AtomicUsize) -> usize {
    let mut byte = [0];
    waiting.fetch_add(1, SeqCst);
    let n = stream.read(&mut byte).unwrap();
    stream.write_all(&byte[..n]).unwrap();
    n
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn rss_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}
