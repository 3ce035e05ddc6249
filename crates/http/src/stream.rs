//! Bytes on their way to the client.

use crate::response::Follows;
use gosched::net::TcpStream;
use std::fmt;
use std::io::{self, IoSlice, Write};

/// A chunk is sent when it has so many bytes.
const CHUNK: usize = 8 << 10;

/// Where the function of [`Response::stream`](crate::Response::stream) writes to.
///
/// Small writes are gathered; `flush` sends what there is, the head of the answer included.
pub struct BodyWriter<'a> {
    stream: &'a TcpStream,
    /// What goes out before the chunk.
    out: &'a mut Vec<u8>,
    chunk: Vec<u8>,
    follows: Follows,
}

impl<'a> BodyWriter<'a> {
    /// `out` has the head, which has not been sent.
    pub(crate) fn new(
        stream: &'a TcpStream,
        out: &'a mut Vec<u8>,
        follows: Follows,
    ) -> BodyWriter<'a> {
        BodyWriter { stream, out, chunk: Vec::new(), follows }
    }

    /// Sends what there is, and says that it is all.
    ///
    /// # Errors
    /// The stream's.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.end_chunk();
        if self.follows == Follows::Chunks {
            self.out.extend_from_slice(b"0\r\n\r\n");
        }
        self.send()
    }

    fn end_chunk(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let is_framed = self.follows == Follows::Chunks;
        if is_framed {
            // Writing to a vector does not fail.
            let _ = write!(self.out, "{:x}\r\n", self.chunk.len());
        }
        self.out.append(&mut self.chunk);
        if is_framed {
            self.out.extend_from_slice(b"\r\n");
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let result = send(self.stream, self.out);
        self.out.clear();
        result
    }
}

impl Write for BodyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_chunk();
        self.send()
    }
}

impl fmt::Debug for BodyWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWriter").field("chunk", &self.chunk.len()).finish_non_exhaustive()
    }
}

/// Sends all of it.
///
/// # Errors
/// The stream's.
pub(crate) fn send(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)
}

/// Sends both, in one write if the kernel takes them.
///
/// # Errors
/// The stream's.
pub(crate) fn send_both(mut stream: &TcpStream, first: &[u8], second: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)])?;
    match sent.checked_sub(first.len()) {
        Some(of_second) => send(stream, &second[of_second..]),
        None => {
            send(stream, &first[sent..])?;
            send(stream, second)
        }
    }
}
