//! What a head says: parsed by `httparse`, then judged by RFC 9112.
//!
//! Invariant: a head whose body could have two ends is refused (I1).

use crate::refusal::Refusal;
use httparse::{Error, Header};
use std::mem::MaybeUninit;

/// A head has at most so many fields, whatever the limit.
pub(crate) const FIELDS_MAX: usize = 128;

/// Where the fields are parsed to.
pub(crate) type Fields<'b> = [MaybeUninit<Header<'b>>];

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) version: Version,
    pub(crate) fields: &'a [Header<'a>],
    pub(crate) framing: Framing,
    /// The connection goes on after this request.
    pub(crate) keeps_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) waits_to_continue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// How the end of the body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

impl<'a> Head<'a> {
    /// Parses the bytes of a whole head.
    ///
    /// # Errors
    /// What makes the server refuse it.
    pub(crate) fn parse(bytes: &'a [u8], fields: &'a mut Fields<'a>) -> Result<Head<'a>, Refusal> {
        let mut parsed = httparse::Request::new(&mut []);
        let status = parsed.parse_with_uninit_headers(bytes, fields);
        match status {
            Ok(httparse::Status::Complete(len)) if len == bytes.len() => {}
            // The end of the head was found before.
            Ok(_) => return Err(Refusal::Malformed),
            Err(Error::TooManyHeaders) => return Err(Refusal::HeadTooLarge),
            Err(Error::Version) if has_other_version(bytes) => return Err(Refusal::Version),
            Err(_) => return Err(Refusal::Malformed),
        }
        let (Some(method), Some(target), Some(minor)) =
            (parsed.method, parsed.path, parsed.version)
        else {
            return Err(Refusal::Malformed);
        };
        let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
        check_target(method, target)?;
        Told::by(parsed.headers, version)?.head(method, target, version, parsed.headers)
    }
}

/// The request line ends in a version of HTTP, but one that is not ours.
fn has_other_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(_), Some(_), Some(word), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    match word.strip_prefix(b"HTTP/") {
        Some([major, b'.', minor]) => major.is_ascii_digit() && minor.is_ascii_digit(),
        _ => false,
    }
}

/// The forms of RFC 9112, 3.2. There are no tunnels here.
fn check_target(method: &str, target: &str) -> Result<(), Refusal> {
    if method == "CONNECT" {
        return Err(Refusal::NotImplemented);
    }
    let has_form = target.starts_with('/')
        || target == "*" && method == "OPTIONS"
        || target.starts_with("http://")
        || target.starts_with("https://");
    if has_form && !target.contains('#') { Ok(()) } else { Err(Refusal::Malformed) }
}

/// What the fields say that matter to the server.
#[derive(Debug, Default)]
struct Told {
    hosts: u32,
    length: Option<u64>,
    coding: Option<Coding>,
    closes: bool,
    keeps: bool,
    waits: bool,
}

/// The transfer codings, all of them in the order applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    /// Something else, then chunked.
    MoreChunked,
    /// Something whose end can't be told.
    Endless,
}

impl Told {
    fn by(fields: &[Header<'_>], version: Version) -> Result<Told, Refusal> {
        let mut told = Told::default();
        for field in fields {
            told.note(field)?;
        }
        match (told.hosts, version) {
            (1, _) | (0, Version::Http10) => Ok(told),
            _ => Err(Refusal::Malformed),
        }
    }

    fn note(&mut self, field: &Header<'_>) -> Result<(), Refusal> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => {
                self.hosts += 1;
                check_host(field.value)
            }
            6 if is("expect") => self.expect(field.value),
            10 if is("connection") => {
                self.connection(field.value);
                Ok(())
            }
            14 if is("content-length") => self.content_length(field.value),
            17 if is("transfer-encoding") => self.transfer_encoding(field.value),
            _ => Ok(()),
        }
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::Expectation);
        }
        self.waits = true;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let length = number(value).ok_or(Refusal::Malformed)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(Refusal::Malformed),
            _ => Ok(()),
        }
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for coding in list(value) {
            let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.coding = Some(match (self.coding, is_chunked) {
                (None, true) => Coding::Chunked,
                (Some(Coding::Endless), true) => Coding::MoreChunked,
                (None | Some(Coding::Endless), false) => Coding::Endless,
                // Chunked is the last, and comes once.
                (Some(Coding::Chunked | Coding::MoreChunked), _) => return Err(Refusal::Malformed),
            });
        }
        // A field without a coding is there all the same.
        self.coding = self.coding.or(Some(Coding::Endless));
        Ok(())
    }

    fn framing(&self, version: Version) -> Result<Framing, Refusal> {
        match (self.coding, self.length, version) {
            (None, length, _) => Ok(Framing::Length(length.unwrap_or(0))),
            (Some(_), Some(_), _) | (Some(_), _, Version::Http10) => Err(Refusal::Malformed),
            (Some(Coding::Chunked), ..) => Ok(Framing::Chunked),
            (Some(Coding::MoreChunked), ..) => Err(Refusal::NotImplemented),
            (Some(Coding::Endless), ..) => Err(Refusal::Malformed),
        }
    }

    fn head<'a>(
        &self,
        method: &'a str,
        target: &'a str,
        version: Version,
        fields: &'a [Header<'a>],
    ) -> Result<Head<'a>, Refusal> {
        let framing = self.framing(version)?;
        let keeps_alive = match version {
            Version::Http10 => self.keeps && !self.closes,
            Version::Http11 => !self.closes,
        };
        let has_body = framing != Framing::Length(0);
        let waits_to_continue = self.waits && version == Version::Http11 && has_body;
        Ok(Head { method, target, version, fields, framing, keeps_alive, waits_to_continue })
    }
}

/// The parts of a list, without the spaces around them.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|part| !part.is_empty())
}

/// Digits and nothing else.
fn number(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(value).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// A name or an address, perhaps with a port. What it names is the handler's affair.
fn check_host(value: &[u8]) -> Result<(), Refusal> {
    let is_of_host =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=:[]%".contains(byte);
    if value.iter().all(is_of_host) { Ok(()) } else { Err(Refusal::Malformed) }
}

#[cfg(test)]
mod tests;
