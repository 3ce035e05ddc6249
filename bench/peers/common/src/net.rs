//! Echo and HTTP over any blocking-style stream, and the HTTP parser that every Rust peer uses.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

pub const MESSAGE: usize = 512;
pub const HEAVY: u64 = 10_000_000;
pub const BUFFER: usize = 4096;

/// Prints `{"port":N}` as the first line, and ends the process after `secs` (default 600).
pub fn announce(args: &crate::Args, listener: &impl AsRawFd, port: u16) {
    raise_fd_limit();
    // The same backlog as Go's listeners have; the libraries' own range from 128 to 1024.
    // SAFETY: no memory is passed.
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    println!("{{\"port\":{port}}}");
    let args = args.clone();
    std::thread::spawn(move || {
        let life = Duration::from_secs_f64(args.get("secs", 600.0));
        std::thread::sleep(life);
        let cpu = crate::Usage::now().cpu.as_secs_f64() * 1e3;
        args.report(0).secs(life).set("cpu_ms", cpu).print();
        std::process::exit(0);
    });
}

pub fn raise_fd_limit() {
    // SAFETY: a struct of numbers, which the kernel fills and reads.
    unsafe {
        let mut lim = std::mem::zeroed::<libc::rlimit>();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut lim);
        lim.rlim_cur = lim.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &lim);
    }
}

pub fn serve_echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut buf = vec![0; MESSAGE];
    loop {
        match stream.read(&mut buf)? {
            0 => return Ok(()),
            n => stream.write_all(&buf[..n])?,
        }
    }
}

/// What the client of `net_pingpong` sends, and gets back; an echo on the other end is to be there.
pub const BALL: usize = 64;

/// The client of `net_pingpong`: how long each of `n` round trips took, in ns.
pub fn play(mut stream: impl Read + Write, n: u64) -> io::Result<Vec<u64>> {
    let mut times = Vec::with_capacity(n as usize);
    let (mut ball, mut back) = ([0; BALL], [0; BALL]);
    for i in 0..n {
        let t0 = Instant::now();
        ball[..8].copy_from_slice(&i.to_ne_bytes());
        stream.write_all(&ball)?;
        stream.read_exact(&mut back)?;
        times.push(t0.elapsed().as_nanos() as u64);
        assert_eq!(back, ball);
    }
    Ok(times)
}

pub fn serve_http(mut stream: impl Read + Write) -> io::Result<()> {
    let mut conn = HttpConn::new();
    loop {
        match stream.read(conn.space())? {
            0 => return Ok(()),
            n => conn.received(n),
        }
        let open = conn.answer_all(sum);
        stream.write_all(&conn.out)?;
        conn.out.clear();
        if !open {
            return Ok(());
        }
    }
}

pub fn sum() -> u64 {
    crate::sum_to(HEAVY)
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Route {
    Hello,
    Heavy,
    Missing,
}

#[derive(Debug, PartialEq)]
pub struct Request {
    pub route: Route,
    pub keep_alive: bool,
    /// Bytes of the head and the body.
    pub len: usize,
}

/// Buffers of one HTTP/1.1 connection.
pub struct HttpConn {
    buf: Vec<u8>,
    filled: usize,
    pub out: Vec<u8>,
}

impl HttpConn {
    #[allow(clippy::new_without_default)]
    pub fn new() -> HttpConn {
        HttpConn { buf: vec![0; BUFFER], filled: 0, out: Vec::with_capacity(256) }
    }

    pub fn space(&mut self) -> &mut [u8] {
        &mut self.buf[self.filled..]
    }

    pub fn received(&mut self, n: usize) {
        self.filled += n;
    }

    /// The next complete request in the buffer, if there is one. `Err`: not HTTP, or too big.
    pub fn next_request(&mut self) -> Result<Option<Request>, ()> {
        let request = parse(&self.buf[..self.filled])?;
        match &request {
            Some(r) => {
                self.buf.copy_within(r.len..self.filled, 0);
                self.filled -= r.len;
            }
            None if self.filled == BUFFER => return Err(()),
            None => {}
        }
        Ok(request)
    }

    /// Answers all complete requests into `out`; false when the connection is to be closed.
    pub fn answer_all(&mut self, heavy: impl Fn() -> u64) -> bool {
        loop {
            match self.next_request() {
                Ok(Some(r)) => {
                    let sum = if r.route == Route::Heavy { heavy() } else { 0 };
                    self.respond(r.route, sum);
                    if !r.keep_alive {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(()) => {
                    self.refuse();
                    return false;
                }
            }
        }
    }

    pub fn refuse(&mut self) {
        self.out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    }

    pub fn respond(&mut self, route: Route, sum: u64) {
        let mut put = |status: &str, body: &str| {
            let _ = write!(
                self.out,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: text/plain\r\n\r\n{body}",
                body.len()
            );
        };
        match route {
            Route::Hello => put("200 OK", "Hello, World!"),
            Route::Heavy => put("200 OK", &sum.to_string()),
            Route::Missing => put("404 Not Found", "not found"),
        }
    }
}

/// Parses one request: the request line, `Connection: close` and `Content-Length`.
pub fn parse(buf: &[u8]) -> Result<Option<Request>, ()> {
    let Some(head_len) = buf.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&buf[..head_len]).map_err(|_| ())?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().ok_or(())?.split(' ');
    let (Some(_method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(());
    };
    let mut keep_alive = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return Err(()),
    };
    let mut body_len = 0;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(())?;
        if name.eq_ignore_ascii_case("content-length") {
            body_len = value.trim().parse().map_err(|_| ())?;
        } else if name.eq_ignore_ascii_case("connection") {
            keep_alive = !value.trim().eq_ignore_ascii_case("close");
        }
    }
    let len = (head_len + 4usize).checked_add(body_len).ok_or(())?;
    if len > BUFFER {
        return Err(());
    }
    let route = match path {
        "/" => Route::Hello,
        "/heavy" => Route::Heavy,
        _ => Route::Missing,
    };
    Ok((buf.len() >= len).then_some(Request { route, keep_alive, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses() {
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Ok(None));
        let get = b"GET /heavy HTTP/1.1\r\nConnection: Close\r\n\r\n";
        let want = Request { route: Route::Heavy, keep_alive: false, len: get.len() };
        assert_eq!(parse(get), Ok(Some(want)));
        assert_eq!(parse(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"), Ok(None));
        let post = b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET";
        let want = Request { route: Route::Hello, keep_alive: true, len: post.len() - 3 };
        assert_eq!(parse(post), Ok(Some(want)));
        assert_eq!(parse(b"nonsense\r\n\r\n"), Err(()));
    }
}
