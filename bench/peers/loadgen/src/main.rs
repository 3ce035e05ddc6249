//! Load for the echo and HTTP servers of the peers: OS threads, each with its own epoll.
//!
//! loadgen --addr 127.0.0.1:PORT [--mode echo|http] [--conns 64] [--secs 5] [--pipeline 1]
//!         [--heavy-percent 0] [--rate R] [--threads 1] [--warmup 0.5]
//!
//! Without --rate the loop is closed: a reply lets its connection send the next request.
//! With --rate R requests fall due R times a second whatever the server does, and latency
//! counts from the moment a request fell due, also when it had to wait for a connection.

use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use peers_common::{Args, Report, mix, net};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

const TIMER: Token = Token(usize::MAX);
const LIGHT_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HEAVY_REQUEST: &[u8] = b"GET /heavy HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LIGHT_BODY: &[u8] = b"Hello, World!";
const HEAVY_BODY: &[u8] = b"49999995000000"; // 0 + 1 + ... + 9_999_999

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Echo,
    Http,
}

#[derive(Clone, Copy)]
struct Plan {
    addr: SocketAddr,
    mode: Mode,
    pipeline: usize,
    heavy_percent: u64,
    /// Time between two requests of one thread, when the loop is open.
    every: Option<Duration>,
    warmup: Duration,
    window: Duration,
}

fn main() {
    let args = Args::options("loadgen", "loadgen".into(), std::env::args().skip(1));
    let fail = |why: &str| -> ! {
        eprintln!("loadgen: {why}");
        std::process::exit(2)
    };
    let Ok(addr) = args.text("addr", "").parse::<SocketAddr>() else { fail("--addr wants IP:PORT") };
    if !addr.ip().is_loopback() {
        fail("it only loads servers on this machine's loopback")
    }
    let mode = match args.text("mode", "http").as_str() {
        "echo" => Mode::Echo,
        "http" => Mode::Http,
        _ => fail("--mode is echo or http"),
    };
    net::raise_fd_limit();
    let conns = args.get("conns", 64usize).max(1);
    let threads = args.get("threads", 1usize).clamp(1, conns);
    let rate: f64 = args.get("rate", 0.0);
    let secs = args.get("secs", 5.0f64).clamp(0.1, 600.0);
    let plan = Plan {
        addr,
        mode,
        pipeline: args.get("pipeline", 1usize).max(1),
        heavy_percent: if mode == Mode::Http { args.get("heavy-percent", 0) } else { 0 },
        every: (rate > 0.0).then(|| Duration::from_secs_f64(threads as f64 / rate)),
        warmup: Duration::from_secs_f64(args.get("warmup", 0.5)),
        window: Duration::from_secs_f64(secs),
    };
    let workers: Vec<_> = (0..threads)
        .map(|t| {
            let share = conns / threads + usize::from(t < conns % threads);
            thread::spawn(move || Worker::connect(plan, share, t).and_then(Worker::run))
        })
        .collect();
    let mut total = Tally::default();
    for worker in workers {
        match worker.join().unwrap() {
            Ok(tally) => total.add(tally),
            Err(e) => fail(&e.to_string()),
        }
    }
    let requests = total.light.len() + total.heavy.len();
    let mut report = Report::default()
        .set("mode", if mode == Mode::Echo { "echo" } else { "http" })
        .set("conns", conns)
        .set("threads", threads)
        .set("pipeline", plan.pipeline)
        .set("secs", secs);
    if rate > 0.0 {
        report = report.set("rate", rate);
    }
    report = report.set("requests", requests).set("req_per_s", requests as f64 / secs);
    for (name, h) in [("light", &total.light), ("heavy", &total.heavy)] {
        if name == "light" || plan.heavy_percent > 0 {
            let us = |q| h.value_at_quantile(q) as f64 / 1e3;
            report = report
                .set(&format!("{name}_count"), h.len())
                .set(&format!("{name}_p50_us"), us(0.50))
                .set(&format!("{name}_p90_us"), us(0.90))
                .set(&format!("{name}_p99_us"), us(0.99))
                .set(&format!("{name}_p999_us"), us(0.999))
                .set(&format!("{name}_max_us"), h.max() as f64 / 1e3);
        }
    }
    report
        .set("errors", total.errors)
        .set("unanswered", total.unanswered) // still under way at the end
        .set("unsent", total.unsent) // fell due, but no connection was free
        .print();
}

struct Tally {
    light: Histogram<u64>,
    heavy: Histogram<u64>,
    errors: u64,
    unanswered: usize,
    unsent: usize,
}

impl Default for Tally {
    fn default() -> Tally {
        let histogram = || Histogram::new_with_bounds(1, 1_200_000_000_000, 3).unwrap(); // ns
        Tally { light: histogram(), heavy: histogram(), errors: 0, unanswered: 0, unsent: 0 }
    }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.light.add(other.light).unwrap();
        self.heavy.add(other.heavy).unwrap();
        self.errors += other.errors;
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
    }
}

struct Request {
    heavy: bool,
    id: u64,
    due: Instant,
}

struct Conn {
    stream: TcpStream,
    alive: bool,
    sent: VecDeque<Request>,
    out: Vec<u8>,
    input: Vec<u8>,
}

struct Worker {
    plan: Plan,
    poll: Poll,
    timer: Timer,
    conns: Vec<Conn>,
    /// One entry for each request that could be sent now: the index of its connection.
    free: VecDeque<usize>,
    /// Open loop: requests that fell due while no connection was free.
    waiting: VecDeque<Request>,
    next_due: Instant,
    made: u64,
    seed: u64,
    message: [u8; net::MESSAGE],
    begin: Instant,
    end: Instant,
    tally: Tally,
}

impl Worker {
    fn connect(plan: Plan, share: usize, index: usize) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let timer = Timer::new()?;
        poll.registry().register(&mut SourceFd(&timer.0.as_raw_fd()), TIMER, Interest::READABLE)?;
        let mut conns = Vec::with_capacity(share);
        for i in 0..share {
            let stream = std::net::TcpStream::connect(plan.addr)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(i), Interest::READABLE | Interest::WRITABLE)?;
            conns.push(Conn {
                stream,
                alive: true,
                sent: VecDeque::new(),
                out: Vec::new(),
                input: Vec::new(),
            });
        }
        let begin = Instant::now() + plan.warmup;
        Ok(Worker {
            plan,
            poll,
            timer,
            free: (0..plan.pipeline).flat_map(|_| 0..share).collect(),
            waiting: VecDeque::new(),
            next_due: Instant::now(),
            made: 0,
            seed: (index as u64) << 48,
            message: std::array::from_fn(|i| i as u8),
            begin,
            end: begin + plan.window,
            conns,
            tally: Tally::default(),
        })
    }

    fn run(mut self) -> io::Result<Tally> {
        let mut events = Events::with_capacity(1024);
        self.fall_due()?;
        self.send_free();
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.conns.iter().all(|c| !c.alive) {
                break;
            }
            match self.poll.poll(&mut events, Some(left)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                done => done?,
            }
            for event in events.iter() {
                if event.token() == TIMER {
                    self.timer.clear();
                    self.fall_due()?;
                    self.send_free();
                } else {
                    self.serve(event.token().0, event.is_readable() || event.is_error());
                }
            }
        }
        self.tally.unanswered = self.conns.iter().map(|c| c.sent.len()).sum();
        self.tally.unsent = self.waiting.len();
        Ok(self.tally)
    }

    /// Open loop: queues what is due by now, and sets the timer to the next.
    fn fall_due(&mut self) -> io::Result<()> {
        let Some(every) = self.plan.every else { return Ok(()) };
        let now = Instant::now();
        while self.next_due <= now {
            let due = self.next_due;
            let request = self.make(due);
            self.waiting.push_back(request);
            self.next_due += every;
        }
        self.timer.set(self.next_due - now)
    }

    fn make(&mut self, due: Instant) -> Request {
        self.made += 1;
        let id = self.seed + self.made;
        Request { heavy: mix(id) % 100 < self.plan.heavy_percent, id, due }
    }

    fn next_request(&mut self) -> Option<Request> {
        match self.plan.every {
            Some(_) => self.waiting.pop_front(),
            None => Some(self.make(Instant::now())),
        }
    }

    fn send_free(&mut self) {
        while let Some(index) = self.free.pop_front() {
            if !self.conns[index].alive {
                continue;
            }
            match self.next_request() {
                Some(request) => {
                    self.put(index, request);
                    self.flush(index);
                }
                None => return self.free.push_front(index),
            }
        }
    }

    fn put(&mut self, index: usize, request: Request) {
        let conn = &mut self.conns[index];
        match (self.plan.mode, request.heavy) {
            (Mode::Echo, _) => {
                self.message[..8].copy_from_slice(&request.id.to_le_bytes());
                conn.out.extend_from_slice(&self.message);
            }
            (Mode::Http, false) => conn.out.extend_from_slice(LIGHT_REQUEST),
            (Mode::Http, true) => conn.out.extend_from_slice(HEAVY_REQUEST),
        }
        conn.sent.push_back(request);
    }

    fn serve(&mut self, index: usize, readable: bool) {
        if !self.conns[index].alive {
            return;
        }
        let received = if readable { self.receive(index) } else { Ok(()) };
        if received.and_then(|()| self.write(index)).is_err() {
            self.bury(index);
        }
    }

    fn flush(&mut self, index: usize) {
        if self.write(index).is_err() {
            self.bury(index);
        }
    }

    fn bury(&mut self, index: usize) {
        let conn = &mut self.conns[index];
        conn.alive = false;
        self.tally.errors += conn.sent.len().max(1) as u64;
        conn.sent.clear();
        let _ = self.poll.registry().deregister(&mut conn.stream);
    }

    fn write(&mut self, index: usize) -> io::Result<()> {
        let conn = &mut self.conns[index];
        while !conn.out.is_empty() {
            match conn.stream.write(&conn.out) {
                Ok(n) => drop(conn.out.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        loop {
            match self.conns[index].stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.conns[index].input.extend_from_slice(&chunk[..n]);
                    self.take_replies(index)?;
                    if n < chunk.len() {
                        return Ok(()); // drained: the edge-triggered epoll tells of more
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes the whole replies from the input of a connection; each frees a place for a request.
    fn take_replies(&mut self, index: usize) -> io::Result<()> {
        let now = Instant::now();
        let mut taken = 0;
        let mut replies = 0;
        let conn = &mut self.conns[index];
        while let Some(request) = conn.sent.front() {
            let input = &conn.input[taken..];
            let reply = match self.plan.mode {
                Mode::Echo => check_echo(input, request, &self.message),
                Mode::Http => check_http(input, request)?,
            };
            let Some((len, right)) = reply else { break };
            let counts = now >= self.begin && now < self.end;
            if !right {
                self.tally.errors += 1;
            } else if counts {
                let ns = (now - request.due).as_nanos() as u64;
                let h = if request.heavy { &mut self.tally.heavy } else { &mut self.tally.light };
                h.saturating_record(ns.max(1));
            }
            conn.sent.pop_front();
            taken += len;
            replies += 1;
        }
        conn.input.drain(..taken);
        if conn.sent.is_empty() && !conn.input.is_empty() {
            return Err(io::ErrorKind::InvalidData.into()); // more than was asked for
        }
        for _ in 0..replies {
            match self.next_request() {
                Some(request) => self.put(index, request),
                None => self.free.push_back(index),
            }
        }
        Ok(())
    }
}

/// The length of the first reply and whether it is right, once it is whole.
fn check_echo(input: &[u8], request: &Request, message: &[u8]) -> Option<(usize, bool)> {
    let reply = input.get(..message.len())?;
    let right = reply[..8] == request.id.to_le_bytes() && reply[8..] == message[8..];
    Some((message.len(), right))
}

fn check_http(input: &[u8], request: &Request) -> io::Result<Option<(usize, bool)>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let Some(head_len) = input.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&input[..head_len]).map_err(|_| bad())?;
    let mut lines = head.split("\r\n");
    let ok = lines.next().is_some_and(|status| status.starts_with("HTTP/1.1 200 "));
    let body_len: usize = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(bad)?;
    let len = head_len + 4 + body_len;
    if input.len() < len {
        return Ok(None);
    }
    let want = if request.heavy { HEAVY_BODY } else { LIGHT_BODY };
    // `gosched serve` puts words before the number.
    Ok(Some((len, ok && input[head_len + 4..len].ends_with(want))))
}

/// A timer that epoll can wait for, finer than epoll's own milliseconds.
struct Timer(OwnedFd);

impl Timer {
    fn new() -> io::Result<Timer> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: no memory is passed.
        match unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: opened just now, and nobody else's.
            fd => Ok(Timer(unsafe { OwnedFd::from_raw_fd(fd) })),
        }
    }

    fn set(&self, after: Duration) -> io::Result<()> {
        // SAFETY: a struct of numbers.
        let mut spec = unsafe { std::mem::zeroed::<libc::itimerspec>() };
        spec.it_value.tv_sec = after.as_secs() as i64;
        spec.it_value.tv_nsec = i64::from(after.subsec_nanos()).max(1);
        // SAFETY: the kernel reads the struct, which is ours.
        match unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &spec, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: writes eight bytes, which are ours.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}
