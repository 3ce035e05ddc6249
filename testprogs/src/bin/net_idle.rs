//! Many idle connections with a goroutine each: `net_idle COUNT [SERVERS]`.
//!
//! The servers, and a client for each, are processes of their own; without SERVERS there are as
//! many as the limit of open files and the ports of an address want. Server number i listens at
//! 127.0.0.(2 + i).
//!
//! Prints `key=value` lines: how many connections were idle at once, threads before and with them
//! (of the server that has most), bytes a connection, and how many answered when they were called.

use gosched::net::{TcpListener, TcpStream};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::{env, fs};

/// Files of a server that are no connections, with room to spare.
const OTHER_FILES: u64 = 100;
/// So many connections a client may have. It has one address with 28,000 ports, and Linux looks at
/// all even ones before it takes the first odd one, which then lasts milliseconds a connection.
const CLIENT_MAX: u64 = 14_000;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let files = raise_file_limit();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["client", address, count] => connect(address.parse().unwrap(), count.parse().unwrap()),
        ["server", number, count] => gosched::run({
            let (number, count) = (number.parse().unwrap(), count.parse().unwrap());
            move || serve(number, count)
        }),
        [count] => {
            let count: u64 = count.parse().unwrap();
            let each_max = files.saturating_sub(OTHER_FILES).clamp(1, CLIENT_MAX);
            run_all(count, count.div_ceil(each_max));
        }
        [count, servers] => run_all(count.parse().unwrap(), servers.parse().unwrap()),
        _ => panic!("usage: net_idle COUNT [SERVERS]"),
    }
}

/// A process of this program, and what it says. It goes on when it is told to.
struct Other {
    child: Child,
    orders: ChildStdin,
    words: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(arguments: &[&str]) -> Other {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let words = BufReader::new(child.stdout.take().unwrap()).lines();
        Other { child, orders, words }
    }

    fn next_line(&mut self) -> String {
        self.words.next().expect("it says what it does").unwrap()
    }

    fn go_on(&mut self) {
        self.orders.write_all(b"\n").unwrap();
    }

    fn next_figures(&mut self) -> Vec<u64> {
        self.next_line().split(' ').map(|figure| figure.parse().unwrap()).collect()
    }
}

fn wait_for_word() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Starts the servers, and lets them go on when all connections are there.
fn run_all(count: u64, servers: u64) {
    assert!((1..250).contains(&servers), "a server for each loopback address");
    let mut servers: Vec<Other> = (0..servers)
        .map(|number| {
            let mine = count / servers + u64::from(number < count % servers);
            Other::start(&["server", &number.to_string(), &mine.to_string()])
        })
        .collect();
    let idle: u64 = servers.iter_mut().map(|server| server.next_figures()[0]).sum();
    servers.iter_mut().for_each(Other::go_on);
    let figures: Vec<_> = servers
        .iter_mut()
        .map(|server| {
            let figures = server.next_figures();
            assert!(server.child.wait().unwrap().success());
            figures
        })
        .collect();
    let most = |at: usize| figures.iter().map(|of_one| of_one[at]).max().unwrap();
    let sum = |at: usize| figures.iter().map(|of_one| of_one[at]).sum::<u64>();
    println!("servers={}", figures.len());
    println!("idle_at_once={idle}");
    println!("threads_before={}", most(0));
    println!("threads_with={}", most(1));
    println!("handed_off={}", most(2));
    println!("bytes_per_connection={}", sum(3) / count);
    println!("answered={}", sum(4));
    println!("answers_seen={}", sum(5));
}

/// Connects, waits for a line on standard input, sends a byte on each connection and counts the
/// answers. Plain blocking std.
fn connect(address: SocketAddr, count: usize) {
    let mut streams: Vec<_> =
        (0..count).map(|_| std::net::TcpStream::connect(address).expect("connects")).collect();
    println!("connected");
    wait_for_word();
    streams.iter_mut().for_each(|stream| stream.write_all(b"?").unwrap());
    let mut answers = 0;
    for stream in &mut streams {
        stream.read_exact(&mut [0]).unwrap();
        answers += 1;
    }
    println!("{answers}");
}

/// Says how many connections are idle, waits, calls them all, and says the figures on one line.
fn serve(number: u8, count: usize) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 2 + number], 0))).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // The runtime is warm before the first look: some goroutines have run.
    (0..1000).map(|_| gosched::go(|| ())).for_each(|g| g.join().unwrap());
    let (threads_before, rss_before) = (threads(), rss_bytes());

    let mut client = Other::start(&["client", &address, &count.to_string()]);
    let waiting = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..count)
        .map(|_| {
            let (stream, _) = listener.accept().unwrap();
            let waiting = waiting.clone();
            gosched::go(move || answer(stream, &waiting))
        })
        .collect();
    assert_eq!(client.next_line(), "connected");
    // Until all wait: the last ones may be on their way into the wait, which costs no more.
    while waiting.load(SeqCst) < count {
        gosched::thread::yield_now();
    }
    let (threads_with, rss_with) = (threads(), rss_bytes());
    let counted = gosched::runtime::counters();
    let handed_off = counted.declared_hand_offs + counted.undeclared_hand_offs;
    println!("{}", waiting.load(SeqCst));
    wait_for_word();
    client.go_on();
    let answers = client.next_figures()[0];
    let answered: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(client.child.wait().unwrap().success());
    let bytes = rss_with.saturating_sub(rss_before);
    println!("{threads_before} {threads_with} {handed_off} {bytes} {answered} {answers}");
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

/// As many files as this process may open.
fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    limit.rlim_cur
}
