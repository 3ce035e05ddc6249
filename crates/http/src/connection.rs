//! One connection: requests and answers in turn, until it ends.
//!
//! Policy is here; how bytes come and go is in `input`, `body` and `stream`.

use crate::body::{Body, Fault};
use crate::config::Config;
use crate::date::Date;
use crate::head::{FIELDS_MAX, Framing, Head, Version};
use crate::input::{Input, end_of, limit_read};
use crate::phase::{Begun, Rest};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::response::{Content, Follows, Reply, Response, WriteBody};
use crate::scan::{Found, Scan};
use crate::stream::{self, BodyWriter};
use crate::table::Connected;
use gosched::net::{Shutdown, TcpStream};
use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A body of up to so many bytes is copied behind its head.
const COPIED_MAX: usize = 16 << 10;
/// So much of a body that the handler did not read is skipped to save the connection. Go's number.
const SKIPPED_MAX: u64 = 256 << 10;
/// A buffer for answers that has grown beyond this is given back.
const OUT_KEPT: usize = 64 << 10;

/// Serves a connection to its end.
pub(crate) fn serve<H>(connected: &Connected, config: &Config, handler: &H)
where
    H: Fn(&mut Request<'_>) -> Response,
{
    // What doesn't work on a socket shows at the first read.
    let _ = connected.stream.set_nodelay(true);
    let _ = connected.stream.set_write_timeout(Some(config.write));
    let wire = Wire { stream: &connected.stream, out: Vec::with_capacity(256), date: Date::new() };
    let mut connection = Connection { connected, config, input: Input::new(), is_cut: false, wire };
    // Nobody knows yet which of the two it is.
    let mut idle = config.header.max(config.idle);
    loop {
        match connection.exchange(handler, idle) {
            Next::Request => idle = config.idle,
            Next::End => return,
            Next::EndUnread => return connection.linger(),
        }
    }
}

struct Connection<'c> {
    connected: &'c Connected,
    config: &'c Config,
    input: Input,
    /// A shutdown has ended the reading side, so an end of it is not the client's fault.
    is_cut: bool,
    wire: Wire<'c>,
}

/// What comes after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Request,
    End,
    /// The client may still be sending what nobody will read.
    EndUnread,
}

/// How the wait for a head ended.
enum Awaited {
    Head(Found),
    Refused(Refusal),
    /// The client is gone, or idle for too long, or the server shuts down.
    Gone,
}

impl Connection<'_> {
    /// One request and its answer.
    fn exchange<H>(&mut self, handler: &H, idle: Duration) -> Next
    where
        H: Fn(&mut Request<'_>) -> Response,
    {
        let Connected { stream, peer, phase } = self.connected;
        let found = match self.await_head(idle) {
            Awaited::Head(found) => found,
            Awaited::Refused(refusal) => return self.wire.refuse(refusal, Reply::LAST),
            Awaited::Gone => return Next::End,
        };
        let (bytes, rest) = self.input.split(found.end);
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let fields = &mut fields[..self.config.fields];
        let head = match Head::parse(&bytes[found.begin..], fields) {
            Ok(head) => head,
            Err(refusal) => {
                let is_head = bytes[found.begin..].starts_with(b"HEAD ");
                return self.wire.refuse(refusal, Reply { is_head, ..Reply::LAST });
            }
        };
        let mut reply =
            Reply { version: head.version, is_head: head.method == "HEAD", keeps_alive: false };
        if matches!(head.framing, Framing::Length(length) if length > self.config.body_bytes) {
            return self.wire.refuse(Refusal::BodyTooLarge, reply);
        }
        let body = Body::new(stream, rest, &head, self.config);
        let mut request = Request::new(&head, body, *peer);
        let response = catch_unwind(AssertUnwindSafe(|| handler(&mut request)));
        let mut body = request.into_body();
        let response = match (response, body.fault()) {
            (_, Some(Fault::Lost)) => return Next::End,
            (_, Some(Fault::Refused(Refusal::Malformed))) if self.is_cut => return Next::End,
            (_, Some(Fault::Refused(refusal))) => return self.wire.refuse(refusal, reply),
            (Err(_), None) => return self.wire.refuse(Refusal::Panicked, reply),
            (Ok(response), None) => response,
        };
        let is_skipped = body.is_worth_skipping(SKIPPED_MAX);
        let is_last = phase.is_last() && body.is_behind_all();
        reply.keeps_alive = head.keeps_alive && !response.closes && is_skipped && !is_last;
        match self.wire.respond(response, reply) {
            Err(_) => Next::End,
            Ok(Follows::UntilClose) => Next::EndUnread,
            Ok(_) if !is_skipped || !body.skip(SKIPPED_MAX) => Next::EndUnread,
            Ok(_) if reply.keeps_alive => Next::Request,
            // The client knew that nothing comes after this request.
            Ok(_) if !head.keeps_alive && self.input.is_empty() => Next::End,
            Ok(_) => Next::EndUnread,
        }
    }

    /// Waits for a whole head.
    fn await_head(&mut self, idle: Duration) -> Awaited {
        if self.input.is_empty() && !self.await_first(idle) {
            return Awaited::Gone;
        }
        let stream = &self.connected.stream;
        let mut scan = Scan::default();
        let mut until = None;
        loop {
            match scan.advance(self.input.buffered(), self.config.head_bytes) {
                Ok(Some(found)) => return Awaited::Head(found),
                Ok(None) => {}
                Err(refusal) => return Awaited::Refused(refusal),
            }
            let until = *until.get_or_insert_with(|| end_of(self.config.header));
            match limit_read(stream, until).and_then(|()| self.input.fill(stream)) {
                Ok(0) if self.is_cut => return Awaited::Gone,
                // The client may have ended its own side only.
                Ok(0) => return Awaited::Refused(Refusal::Malformed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Awaited::Refused(Refusal::Late);
                }
                Err(_) => return Awaited::Gone,
            }
        }
    }

    /// Waits for the first bytes of a request; false if none come.
    fn await_first(&mut self, idle: Duration) -> bool {
        let Connected { stream, phase, .. } = self.connected;
        if self.connected.phase.rest() == Rest::Ends {
            // What has arrived can still be read.
            let _ = stream.shutdown(Shutdown::Read);
        }
        let received = stream.set_read_timeout(Some(idle)).and_then(|()| self.input.fill(stream));
        self.is_cut = phase.begin() == Begun::Cut;
        matches!(received, Ok(1..))
    }

    /// Ends the connection so that the client can read the last answer: closing it with bytes that
    /// nobody has read would make the kernel throw the answer away (RFC 9112, 9.6).
    fn linger(&mut self) {
        let Connected { stream, phase, .. } = self.connected;
        let _ = stream.shutdown(Shutdown::Write);
        if phase.rest() == Rest::Ends {
            let _ = stream.shutdown(Shutdown::Read);
        }
        let until = end_of(self.config.header);
        let mut scratch = [0; 4 << 10];
        let mut left = SKIPPED_MAX.max(self.config.body_bytes);
        let mut reader = stream;
        while left > 0 {
            match limit_read(stream, until).and_then(|()| reader.read(&mut scratch)) {
                Ok(0) | Err(_) => return,
                Ok(n) => left = left.saturating_sub(n as u64),
            }
        }
    }
}

impl Reply {
    /// To a head that could not be read.
    const LAST: Reply = Reply { version: Version::Http11, is_head: false, keeps_alive: false };
}

/// The sending side.
struct Wire<'c> {
    stream: &'c TcpStream,
    out: Vec<u8>,
    date: Date,
}

impl Wire<'_> {
    fn refuse(&mut self, refusal: Refusal, reply: Reply) -> Next {
        match self.respond(Response::refusing(refusal), Reply { keeps_alive: false, ..reply }) {
            Ok(_) => Next::EndUnread,
            Err(_) => Next::End,
        }
    }

    /// Sends the whole answer.
    fn respond(&mut self, response: Response, reply: Reply) -> io::Result<Follows> {
        self.out.clear();
        let follows = response.follows(reply);
        response.write_head(&mut self.out, reply, &mut self.date);
        match (response.content, follows) {
            (_, Follows::Nothing) => stream::send(self.stream, &self.out)?,
            (Content::Bytes(bytes), _) if bytes.len() <= COPIED_MAX => {
                self.out.extend_from_slice(&bytes);
                stream::send(self.stream, &self.out)?;
            }
            (Content::Bytes(bytes), _) => stream::send_both(self.stream, &self.out, &bytes)?,
            (Content::Stream(write), _) => self.stream_body(write, follows)?,
        }
        if self.out.capacity() > OUT_KEPT {
            self.out = Vec::new();
        }
        Ok(follows)
    }

    fn stream_body(&mut self, write: Box<WriteBody>, follows: Follows) -> io::Result<()> {
        let mut body = BodyWriter::new(self.stream, &mut self.out, follows);
        match catch_unwind(AssertUnwindSafe(|| write(&mut body))) {
            Ok(written) => written.and_then(|()| body.finish()),
            Err(_) => Err(io::Error::other("the function that writes the body panicked")),
        }
    }
}
