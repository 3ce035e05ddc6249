//! The body of a request, read as it comes in.
//!
//! Invariant: never reads beyond the body's end, and remembers what went wrong, so that an answer
//! made without noticing is not sent (I2).

use crate::chunked::Chunked;
use crate::config::Config;
use crate::head::{Framing, Head};
use crate::input::{Rest, end_of, limit_read};
use crate::refusal::Refusal;
use gosched::net::TcpStream;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Into a smaller buffer one doesn't receive directly.
const DIRECT_MIN: usize = 1 << 10;

/// The body of a request, as a stream: the `Body` of Go's `http.Request`.
///
/// Reading waits for the client, who may still be sending. What nobody reads is skipped by the
/// server, or the connection ends.
///
/// ```
/// use gosched_http::{Request, Response};
/// use std::io::Read;
///
/// fn sum(req: &mut Request<'_>) -> Response {
///     let mut sum = 0_u64;
///     for byte in req.body().bytes() {
///         match byte {
///             Ok(byte) => sum += u64::from(byte),
///             Err(_) => return Response::new(400), // the server knows better what to say
///         }
///     }
///     Response::text(sum.to_string())
/// }
/// ```
///
/// # Errors
/// Of reads: `UnexpectedEof` if the client is gone; `InvalidData` for what is not the chunked coding;
/// `FileTooLarge` beyond the limit; `TimedOut`. The server then answers by itself (400, 413, 408),
/// whatever the handler returns, and the connection ends.
pub struct Body<'a> {
    stream: &'a TcpStream,
    rest: Rest<'a>,
    left: Left,
    waits_to_continue: bool,
    received: u64,
    limit: u64,
    timeout: Duration,
    /// When the first wait began the end of all was set.
    until: Option<Option<Instant>>,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum Left {
    Length(u64),
    Chunked(Chunked),
}

/// Why a body did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is answered by the server.
    Refused(Refusal),
    /// Nobody is there any more to be answered.
    Lost,
}

impl<'a> Body<'a> {
    pub(crate) fn new(
        stream: &'a TcpStream,
        rest: Rest<'a>,
        head: &Head<'_>,
        config: &Config,
    ) -> Body<'a> {
        let left = match head.framing {
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::Chunked(Chunked::new(config.head_bytes)),
        };
        Body {
            stream,
            rest,
            left,
            waits_to_continue: head.waits_to_continue,
            received: 0,
            limit: config.body_bytes,
            timeout: config.body,
            until: None,
            fault: None,
        }
    }

    /// How long it is, if the client said so beforehand.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self.left {
            Left::Length(left) => Some(self.received + left),
            Left::Chunked(_) => None,
        }
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Whether what is left may be skipped, which costs at most `most` bytes as far as one knows.
    pub(crate) fn is_worth_skipping(&self, most: u64) -> bool {
        match &self.left {
            Left::Length(0) => true,
            // The client may never send it.
            _ if self.waits_to_continue => false,
            Left::Length(left) => *left <= most,
            Left::Chunked(_) => true,
        }
    }

    /// Whether nothing behind it has been received, as far as one knows.
    pub(crate) fn is_behind_all(&self) -> bool {
        match &self.left {
            Left::Length(left) => self.rest.buffered().len() as u64 <= *left,
            Left::Chunked(chunked) if chunked.has_ended() => self.rest.buffered().is_empty(),
            Left::Chunked(_) => true,
        }
    }

    /// Skips what is left; false if that is too much or doesn't come.
    pub(crate) fn skip(&mut self, most: u64) -> bool {
        self.has_ended() || self.skip_some(most)
    }

    /// Apart, for its large frame.
    #[cold]
    fn skip_some(&mut self, most: u64) -> bool {
        let skipped = io::copy(&mut self.by_ref().take(most), &mut io::sink());
        skipped.is_ok() && self.has_ended()
    }

    fn has_ended(&self) -> bool {
        match &self.left {
            Left::Length(left) => *left == 0,
            Left::Chunked(chunked) => chunked.has_ended(),
        }
    }

    /// How many bytes of data come next. Takes what is between chunks; 0 is the end.
    fn next_data(&mut self) -> Result<u64, Fault> {
        loop {
            let chunked = match &mut self.left {
                Left::Length(left) => return Ok(*left),
                Left::Chunked(chunked) => chunked,
            };
            match chunked.data_left() {
                0 if chunked.has_ended() => return Ok(0),
                0 => {}
                left if left > self.limit - self.received => {
                    return Err(Fault::Refused(Refusal::BodyTooLarge));
                }
                left => return Ok(left),
            }
            match chunked.advance(self.rest.buffered()) {
                Ok(0) => self.receive()?,
                Ok(used) => self.rest.consume(used),
                Err(refusal) => return Err(Fault::Refused(refusal)),
            }
        }
    }

    fn read_data(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        let data = self.next_data()?;
        let most = usize::try_from(data).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let n = self.fetch(&mut buffer[..most])?;
        self.received += n as u64;
        match &mut self.left {
            Left::Length(left) => *left -= n as u64,
            Left::Chunked(chunked) => chunked.take(n as u64),
        }
        Ok(n)
    }

    /// Some of what is buffered, or else of what comes.
    fn fetch(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        if self.rest.buffered().is_empty() {
            if buffer.len() >= DIRECT_MIN {
                self.prepare()?;
                let mut stream = self.stream;
                return some(stream.read(buffer));
            }
            self.receive()?;
        }
        let buffered = self.rest.buffered();
        let n = buffered.len().min(buffer.len());
        buffer[..n].copy_from_slice(&buffered[..n]);
        self.rest.consume(n);
        Ok(n)
    }

    fn receive(&mut self) -> Result<(), Fault> {
        self.prepare()?;
        some(self.rest.fill(self.stream)).map(|_| ())
    }

    /// Before one waits for the client.
    fn prepare(&mut self) -> Result<(), Fault> {
        if std::mem::take(&mut self.waits_to_continue) {
            let mut stream = self.stream;
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|_| Fault::Lost)?;
        }
        let timeout = self.timeout;
        let until = *self.until.get_or_insert_with(|| end_of(timeout));
        limit_read(self.stream, until).map_err(fault)
    }
}

fn some(received: io::Result<usize>) -> Result<usize, Fault> {
    match received {
        // The client may still be listening.
        Ok(0) => Err(Fault::Refused(Refusal::Malformed)),
        Ok(n) => Ok(n),
        Err(error) => Err(fault(error)),
    }
}

fn fault(error: io::Error) -> Fault {
    match error.kind() {
        ErrorKind::TimedOut => Fault::Refused(Refusal::Late),
        _ => Fault::Lost,
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = match self.fault {
            Some(fault) => Err(fault),
            None => self.read_data(buffer),
        };
        result.map_err(|fault| {
            self.fault = Some(fault);
            error(fault)
        })
    }
}

fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::Refused(Refusal::Late) => ErrorKind::TimedOut.into(),
        Fault::Refused(Refusal::BodyTooLarge) => ErrorKind::FileTooLarge.into(),
        Fault::Refused(_) => io::Error::new(ErrorKind::InvalidData, "malformed or incomplete body"),
        Fault::Lost => io::Error::new(ErrorKind::UnexpectedEof, "the client is gone"),
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("left", &self.left).field("received", &self.received).finish()
    }
}
