//! An answer, and its head in bytes.

use crate::date::Date;
use crate::head::Version;
use crate::refusal::Refusal;
use crate::status::{is_bodiless, reason};
use crate::stream::BodyWriter;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

/// Fields that the server writes itself.
const OWN_FIELDS: [&str; 4] = ["connection", "content-length", "date", "transfer-encoding"];

const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const JSON: &str = "Content-Type: application/json\r\n";
const BYTES: &str = "Content-Type: application/octet-stream\r\n";

/// What a handler answers.
///
/// Go's `http.ResponseWriter` the other way round: the handler returns it, so its length is known
/// and head and body go out in one write.
///
/// ```
/// use gosched_http::Response;
///
/// let hello = Response::text("Hello, World!\n");
/// let busy = Response::new(503).header("Retry-After", "1").body("too busy\n");
/// # drop((hello, busy));
/// ```
#[must_use = "a handler returns it"]
pub struct Response {
    pub(crate) status: u16,
    /// A whole line, or nothing.
    content_type: &'static str,
    /// Whole lines.
    fields: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) closes: bool,
}

pub(crate) enum Content {
    Bytes(Cow<'static, [u8]>),
    Stream(Box<WriteBody>),
}

pub(crate) type WriteBody = dyn FnOnce(&mut BodyWriter<'_>) -> io::Result<()>;

impl Response {
    /// An answer without a body.
    ///
    /// # Panics
    /// If the status is not within 200 to 599.
    #[track_caller]
    pub fn new(status: u16) -> Response {
        assert!((200..=599).contains(&status), "no status of a final answer");
        Response {
            status,
            content_type: "",
            fields: Vec::new(),
            content: Content::Bytes(Cow::Borrowed(&[])),
            closes: false,
        }
    }

    /// 200 with a text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Response {
        Response::new(200).body(text)
    }

    /// 200 with bytes of no particular kind.
    pub fn bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Response {
        let content = Content::Bytes(bytes.into());
        Response { content_type: BYTES, content, ..Response::new(200) }
    }

    /// 200 with JSON.
    pub fn json(text: impl Into<Cow<'static, str>>) -> Response {
        Response { content_type: JSON, ..Response::text(text) }
    }

    /// 404 with a word.
    pub fn not_found() -> Response {
        Response::new(404).body("not found\n")
    }

    /// 200 with a body that is written while it is sent, in chunks.
    ///
    /// `write` runs after the handler has returned, in the same goroutine; its writes wait when the
    /// client reads slowly. If it fails or panics the connection ends before the body does, which
    /// the client notices. For `HEAD` it is not called.
    ///
    /// ```
    /// use gosched_http::Response;
    /// use std::io::Write;
    ///
    /// let numbers = Response::stream(|out| {
    ///     for n in 0..1_000_000 {
    ///         writeln!(out, "{n}")?;
    ///     }
    ///     Ok(())
    /// });
    /// # drop(numbers);
    /// ```
    pub fn stream(write: impl FnOnce(&mut BodyWriter<'_>) -> io::Result<()> + 'static) -> Response {
        Response { content: Content::Stream(Box::new(write)), ..Response::new(200) }
    }

    /// With this text as its body.
    pub fn body(mut self, text: impl Into<Cow<'static, str>>) -> Response {
        self.content_type = TEXT;
        self.content = Content::Bytes(match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
        self
    }

    /// With another status.
    ///
    /// # Panics
    /// If the status is not within 200 to 599.
    #[track_caller]
    pub fn status(mut self, status: u16) -> Response {
        assert!((200..=599).contains(&status), "no status of a final answer");
        self.status = status;
        self
    }

    /// With one more field; a `Content-Type` takes the place of the one before.
    ///
    /// # Panics
    /// If it is no field (a line break in the value, say), or one that the server writes itself:
    /// `Connection` (see [`close`](Response::close)), `Content-Length`, `Date`,
    /// `Transfer-Encoding`. The client then gets 500.
    #[track_caller]
    pub fn header(mut self, name: &str, value: &str) -> Response {
        assert!(is_name(name), "not the name of a field");
        assert!(is_value(value), "not the value of a field");
        let is_own = OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name));
        assert!(!is_own, "a field that the server writes");
        if name.eq_ignore_ascii_case("content-type") {
            self.content_type = "";
        }
        for part in [name, ": ", value, "\r\n"] {
            self.fields.extend_from_slice(part.as_bytes());
        }
        self
    }

    /// The connection ends after it.
    pub fn close(mut self) -> Response {
        self.closes = true;
        self
    }

    /// The server's own answer to what it refuses.
    pub(crate) fn refusing(refusal: Refusal) -> Response {
        let status = refusal.status();
        Response::new(status).body(reason(status)).close()
    }
}

fn is_name(name: &str) -> bool {
    let is_of_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_of_token)
}

fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || byte >= b' ' && byte != 0x7f)
}

/// Whom an answer is for, and what comes after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) version: Version,
    /// It asked for the head only.
    pub(crate) is_head: bool,
    pub(crate) keeps_alive: bool,
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nothing,
    Length,
    Chunks,
    /// Bytes up to the end of the connection, for HTTP/1.0.
    UntilClose,
}

impl Response {
    pub(crate) fn follows(&self, reply: Reply) -> Follows {
        match &self.content {
            _ if reply.is_head || is_bodiless(self.status) => Follows::Nothing,
            Content::Bytes(_) => Follows::Length,
            Content::Stream(_) if reply.version == Version::Http10 => Follows::UntilClose,
            Content::Stream(_) => Follows::Chunks,
        }
    }

    /// Appends the head.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>, reply: Reply, date: &mut Date) {
        // Writing to a vector does not fail.
        let _ = match self.status {
            200 => out.write_all(b"HTTP/1.1 200 OK\r\n"),
            other => write!(out, "HTTP/1.1 {other} {}\r\n", reason(other)),
        };
        match &self.content {
            _ if is_bodiless(self.status) => {}
            Content::Bytes(bytes) => {
                out.extend_from_slice(b"Content-Length: ");
                number(out, bytes.len());
                out.extend_from_slice(b"\r\n");
            }
            Content::Stream(_) if reply.version == Version::Http11 => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            Content::Stream(_) => {}
        }
        out.extend_from_slice(self.content_type.as_bytes());
        out.extend_from_slice(date.now());
        match (reply.keeps_alive, reply.version) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, Version::Http11) => {}
        }
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends a number; `write!` takes several times as long.
fn number(out: &mut Vec<u8>, number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers() {
        for n in [0, 9, 10, 1_234_567_890, usize::MAX] {
            let mut out = Vec::new();
            number(&mut out, n);
            assert_eq!(out, n.to_string().into_bytes());
        }
    }
}
