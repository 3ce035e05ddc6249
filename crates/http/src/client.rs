//! A client for health checks and tests: one connection, one request at a time.
//!
//! No TLS, no redirects, no pool. It shares the parser and the chunked coding with the server, and
//! waits as sockets of `gosched` do. A client with all of that may be any blocking crate: on a
//! goroutine a call that blocks its thread holds nobody else up.

use crate::chunked::Chunked;
use crate::status::is_bodiless;
use gosched::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// The most bytes of a head.
const HEAD_MAX: usize = 64 << 10;
/// The most fields of a head.
const FIELDS_MAX: usize = 128;
/// The most bytes of a body.
const BODY_MAX: u64 = 64 << 20;
/// How long [`get`] waits in all.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// Its number, such as 200.
    pub status: u16,
    /// Names and values of the head's fields, in their order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, decoded if it came in chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the first field with this name, in any letter case, if it is UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        str::from_utf8(&field.1).ok()
    }
}

/// Gets `http://HOST:PORT/PATH` over a connection of its own. Go's `http.Get`.
///
/// ```no_run
/// let answer = gosched_http::client::get("http://127.0.0.1:8080/healthz").unwrap();
/// assert_eq!(answer.status, 200);
/// ```
///
/// # Errors
/// `InvalidInput` for another kind of address; what the sockets say; `TimedOut` after 30 s;
/// `InvalidData` for what is not HTTP.
pub fn get(url: &str) -> io::Result<Answer> {
    let bad = || io::Error::new(ErrorKind::InvalidInput, "not an address such as http://host:80/");
    let rest = url.strip_prefix("http://").ok_or_else(bad)?;
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    if authority.is_empty() || rest.contains(|c: char| c.is_ascii_control() || c == ' ') {
        return Err(bad());
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let stream = match has_port {
        true => TcpStream::connect(authority)?,
        false => TcpStream::connect((authority.trim_matches(['[', ']']), 80))?,
    };
    stream.set_deadline(Instant::now().checked_add(TIMEOUT));
    let head = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    Connection::new(stream).exchange(head.as_bytes(), Asked::Body)
}

/// Whether the answer to a request has a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Any method but `HEAD`.
    Body,
    /// `HEAD`.
    HeadOnly,
}

/// A connection to a server, for requests one after the other.
///
/// Limits of time are the stream's.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    /// On a stream that is connected.
    #[must_use]
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, received: Vec::new() }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request, which is to be whole, and waits for its answer.
    ///
    /// # Errors
    /// As of [`receive`](Connection::receive), and what the stream says.
    pub fn exchange(&mut self, request: &[u8], asked: Asked) -> io::Result<Answer> {
        self.stream.write_all(request)?;
        self.receive(asked)
    }

    /// Waits for the next answer; passes over interim ones, such as `100 Continue`.
    ///
    /// # Errors
    /// What the stream says; `UnexpectedEof` if the connection ends first; `InvalidData` for what is
    /// not HTTP or beyond the limits: heads of 64 KiB, bodies of 64 MiB.
    pub fn receive(&mut self, asked: Asked) -> io::Result<Answer> {
        loop {
            let (mut answer, framing) = self.receive_head(asked)?;
            if answer.status >= 200 {
                answer.body = self.receive_body(framing)?;
                return Ok(answer);
            }
        }
    }

    fn receive_head(&mut self, asked: Asked) -> io::Result<(Answer, Framing)> {
        loop {
            if let Some((len, answer)) = parse(&self.received)? {
                self.received.drain(..len);
                let framing = Framing::of(&answer, asked)?;
                return Ok((answer, framing));
            }
            if self.received.len() > HEAD_MAX {
                return Err(not_http());
            }
            self.fill()?;
        }
    }

    fn receive_body(&mut self, framing: Framing) -> io::Result<Vec<u8>> {
        match framing {
            Framing::Length(length) if length > BODY_MAX => Err(not_http()),
            Framing::Length(length) => {
                while (self.received.len() as u64) < length {
                    self.fill()?;
                }
                let rest = self.received.split_off(length as usize);
                Ok(std::mem::replace(&mut self.received, rest))
            }
            Framing::Chunked => self.receive_chunks(),
            Framing::UntilClose => {
                while self.received.len() as u64 <= BODY_MAX {
                    match self.fill() {
                        Ok(()) => {}
                        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                            return Ok(std::mem::take(&mut self.received));
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(not_http())
            }
        }
    }

    fn receive_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut chunked = Chunked::new(HEAD_MAX);
        let mut body = Vec::new();
        loop {
            if self.received.is_empty() && !chunked.has_ended() {
                self.fill()?;
            }
            let used = match chunked.data_left() {
                0 if chunked.has_ended() => return Ok(body),
                0 => chunked.advance(&self.received).map_err(|_| not_http())?,
                left if left > BODY_MAX - body.len() as u64 => return Err(not_http()),
                left => {
                    let n = self.received.len().min(left as usize);
                    body.extend_from_slice(&self.received[..n]);
                    chunked.take(n as u64);
                    n
                }
            };
            self.received.drain(..used);
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8 << 10];
        match self.stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            n => {
                self.received.extend_from_slice(&buffer[..n]);
                Ok(())
            }
        }
    }
}

/// How the end of an answer's body is found.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    fn of(answer: &Answer, asked: Asked) -> io::Result<Framing> {
        if asked == Asked::HeadOnly || is_bodiless(answer.status) {
            return Ok(Framing::Length(0));
        }
        match (answer.header("transfer-encoding"), answer.header("content-length")) {
            (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            (Some(_), _) => Err(not_http()),
            (None, Some(length)) => length.parse().map(Framing::Length).map_err(|_| not_http()),
            (None, None) => Ok(Framing::UntilClose),
        }
    }
}

/// The head, with its length, once it is whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Answer)>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let len = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(not_http()),
    };
    let headers = parsed.headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec()));
    let headers = headers.collect();
    Ok(Some((len, Answer { status: parsed.code.unwrap_or(0), headers, body: Vec::new() })))
}

fn not_http() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "not an answer in HTTP/1.1, or too long")
}
