//! What has been received and not yet used.

use gosched::net::TcpStream;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// The size at the beginning, and the one to which a buffer that has grown goes back.
const USUAL: usize = 4 << 10;
/// Behind a head there is at least so much room, for what is between the chunks of its body.
const ROOM_MIN: usize = 512;

/// The buffer of a connection.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new() -> Input {
        Input { bytes: vec![0; USUAL], start: 0, end: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn buffered(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Receives more; 0 is the end.
    ///
    /// # Errors
    /// The stream's.
    pub(crate) fn fill(&mut self, mut stream: &TcpStream) -> io::Result<usize> {
        self.make_room();
        let n = stream.read(&mut self.bytes[self.end..])?;
        self.end += n;
        Ok(n)
    }

    fn make_room(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > USUAL {
                self.bytes.truncate(USUAL);
                self.bytes.shrink_to(USUAL);
            }
        } else if self.bytes.len() - self.end < ROOM_MIN {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.bytes.len() - self.end < ROOM_MIN {
                self.bytes.resize(2 * self.bytes.len(), 0);
            }
        }
    }

    /// Takes a head of `len` bytes, and lends what comes behind it.
    pub(crate) fn split(&mut self, len: usize) -> (&[u8], Rest<'_>) {
        if self.bytes.len() - (self.start + len) < ROOM_MIN {
            self.make_room_behind(len);
        }
        let head = self.start;
        self.start += len;
        let behind = self.start;
        let (front, bytes) = self.bytes.split_at_mut(behind);
        (&front[head..], Rest { bytes, behind, start: &mut self.start, end: &mut self.end })
    }

    fn make_room_behind(&mut self, len: usize) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let wanted = (len + ROOM_MIN).max(self.end);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
    }
}

/// The input behind a head, while the head is in use.
#[derive(Debug)]
pub(crate) struct Rest<'a> {
    bytes: &'a mut [u8],
    /// Where it begins in the whole input, which is what `start` and `end` count from.
    behind: usize,
    start: &'a mut usize,
    end: &'a mut usize,
}

impl Rest<'_> {
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.bytes[*self.start - self.behind..*self.end - self.behind]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        *self.start += n;
        debug_assert!(self.start <= self.end);
    }

    /// Receives more into the buffer, which must be empty; 0 is the end.
    ///
    /// # Errors
    /// The stream's.
    pub(crate) fn fill(&mut self, mut stream: &TcpStream) -> io::Result<usize> {
        debug_assert!(self.buffered().is_empty());
        (*self.start, *self.end) = (self.behind, self.behind);
        let n = stream.read(self.bytes)?;
        *self.end += n;
        Ok(n)
    }
}

/// When something has to be done by; `None`: no matter when.
pub(crate) fn end_of(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Lets the next read wait until then.
///
/// # Errors
/// `TimedOut`: it is over.
pub(crate) fn limit_read(stream: &TcpStream, until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    match left {
        Some(left) if left.is_zero() => Err(io::ErrorKind::TimedOut.into()),
        left => stream.set_read_timeout(left),
    }
}
