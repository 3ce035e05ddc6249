//! As much of HTTP/1.1 as the servers' benches need, the same as the peers'.

use std::io::Write;

/// Requests up to this size, body included.
const BUFFER: usize = 4096;
/// What `/heavy` adds up to.
const HEAVY: u64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Hello,
    Heavy,
    Missing,
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    route: Route,
    keep_alive: bool,
    /// Bytes of the head and the body.
    len: usize,
}

/// Not HTTP, or too large.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

/// Buffers of one connection.
pub(crate) struct Connection {
    buffer: Vec<u8>,
    filled: usize,
    answers: Vec<u8>,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection { buffer: vec![0; BUFFER], filled: 0, answers: Vec::with_capacity(256) }
    }

    /// Where to read to.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    pub(crate) fn received(&mut self, n: usize) {
        self.filled += n;
    }

    /// What is to be sent.
    pub(crate) fn answers(&self) -> &[u8] {
        &self.answers
    }

    pub(crate) fn clear_answers(&mut self) {
        self.answers.clear();
    }

    /// Answers all complete requests; false when the connection is to be closed afterwards.
    pub(crate) fn answer_all(&mut self) -> bool {
        loop {
            match self.next_request() {
                Ok(Some(request)) => {
                    self.respond(request.route);
                    if !request.keep_alive {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(Malformed) => {
                    self.put("400 Bad Request", "", None);
                    return false;
                }
            }
        }
    }

    fn next_request(&mut self) -> Result<Option<Request>, Malformed> {
        let request = parse(&self.buffer[..self.filled])?;
        match &request {
            Some(r) => {
                self.buffer.copy_within(r.len..self.filled, 0);
                self.filled -= r.len;
            }
            None if self.filled == BUFFER => return Err(Malformed),
            None => {}
        }
        Ok(request)
    }

    fn respond(&mut self, route: Route) {
        match route {
            Route::Hello => self.put("200 OK", "Hello, World!", Some("text/plain")),
            Route::Heavy => self.put("200 OK", &sum().to_string(), Some("text/plain")),
            Route::Missing => self.put("404 Not Found", "not found", Some("text/plain")),
        }
    }

    fn put(&mut self, status: &str, body: &str, kind: Option<&str>) {
        let out = &mut self.answers;
        // Writing to a vector does not fail.
        let _ = write!(out, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
        if let Some(kind) = kind {
            let _ = write!(out, "Content-Type: {kind}\r\n");
        }
        let _ = write!(out, "\r\n{body}");
    }
}

fn sum() -> u64 {
    (0..HEAVY).fold(0, |sum, i| std::hint::black_box(sum + i))
}

/// Parses one request: the request line, `Connection: close` and `Content-Length`.
fn parse(bytes: &[u8]) -> Result<Option<Request>, Malformed> {
    let Some(head_len) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..head_len]).map_err(|_| Malformed)?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().ok_or(Malformed)?.split(' ');
    let (Some(_method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Malformed);
    };
    let mut keep_alive = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return Err(Malformed),
    };
    let mut body_len = 0_usize;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Malformed)?;
        if name.eq_ignore_ascii_case("content-length") {
            body_len = value.trim().parse().map_err(|_| Malformed)?;
        } else if name.eq_ignore_ascii_case("connection") {
            keep_alive = !value.trim().eq_ignore_ascii_case("close");
        }
    }
    let len = (head_len + 4).checked_add(body_len).ok_or(Malformed)?;
    if len > BUFFER {
        return Err(Malformed);
    }
    let route = match path {
        "/" => Route::Hello,
        "/heavy" => Route::Heavy,
        _ => Route::Missing,
    };
    Ok((bytes.len() >= len).then_some(Request { route, keep_alive, len }))
}

#[cfg(test)]
mod tests {
    use super::{Connection, Malformed, Request, Route, parse};

    #[test]
    fn parses_as_the_peers_do() {
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Ok(None));
        let get = b"GET /heavy HTTP/1.1\r\nConnection: Close\r\n\r\n";
        let want = Request { route: Route::Heavy, keep_alive: false, len: get.len() };
        assert_eq!(parse(get), Ok(Some(want)));
        assert_eq!(parse(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"), Ok(None));
        let post = b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET";
        let want = Request { route: Route::Hello, keep_alive: true, len: post.len() - 3 };
        assert_eq!(parse(post), Ok(Some(want)));
        assert_eq!(parse(b"nonsense\r\n\r\n"), Err(Malformed));
    }

    #[test]
    fn answers_what_is_complete_and_keeps_the_rest() {
        let mut connection = Connection::new();
        let bytes = b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET";
        connection.space()[..bytes.len()].copy_from_slice(bytes);
        connection.received(bytes.len());
        assert!(connection.answer_all());
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\n\
                      Hello, World!";
        assert_eq!(std::str::from_utf8(connection.answers()).unwrap(), answer.repeat(2));
        assert_eq!(connection.filled, 3);
    }
}
