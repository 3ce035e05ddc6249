//! Unix stream sockets.

use super::SocketAddr;
use crate::common::{delegate, socket, stream};
use crate::pollable::Pollable;
use crate::sys;
use crate::with_context::WithContext;
use gosched_sched::{Cancels, Direction, blocking};
use std::io;
use std::os::unix::net;
use std::path::Path;

/// A connection within the machine. std's `UnixStream`.
///
/// ```
/// use gosched_net::unix::UnixStream;
/// use std::io::{Read, Write};
///
/// gosched_sched::run(|| {
///     let (mut a, mut b) = UnixStream::pair().unwrap();
///     a.write_all(b"hello").unwrap();
///     drop(a);
///     let mut text = String::new();
///     b.read_to_string(&mut text).unwrap();
///     assert_eq!(text, "hello");
/// });
/// ```
pub struct UnixStream {
    io: Pollable<net::UnixStream>,
}

socket!(UnixStream, net::UnixStream, timeouts: both);
// A read ends at each message that carries descriptors.
stream!(UnixStream, short_read_empties: false);

impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// The kernel has no way to tell when a listener whose queue is full has room again, so this is
    /// a declared blocking call. It rarely lasts.
    ///
    /// # Errors
    /// What the system answers.
    pub fn connect<P: AsRef<Path>>(path: P) -> io::Result<UnixStream> {
        UnixStream::of(blocking(|| net::UnixStream::connect(path))?)
    }

    /// As [`connect`](UnixStream::connect), to an address.
    ///
    /// # Errors
    /// What the system answers.
    pub fn connect_addr(address: &SocketAddr) -> io::Result<UnixStream> {
        UnixStream::of(blocking(|| net::UnixStream::connect_addr(address))?)
    }

    /// Two sockets that are connected with each other.
    ///
    /// # Errors
    /// Too many open files.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (a, b) = net::UnixStream::pair()?;
        Ok((UnixStream::of(a)?, UnixStream::of(b)?))
    }
}

delegate! { UnixStream:
    /// This side's address.
    local_addr() -> SocketAddr;
    /// The other side's address.
    peer_addr() -> SocketAddr;
}

/// A Unix socket that connections come in at. std's `UnixListener`.
///
/// Many goroutines may accept from one; each connection goes to one of them.
pub struct UnixListener {
    io: Pollable<net::UnixListener>,
}

socket!(UnixListener, net::UnixListener, timeouts:);

impl UnixListener {
    /// Listens at `path`, which must not exist.
    ///
    /// # Errors
    /// What the system answers.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixListener> {
        UnixListener::listening(net::UnixListener::bind(path)?)
    }

    /// As [`bind`](UnixListener::bind), at an address.
    ///
    /// # Errors
    /// What the system answers.
    pub fn bind_addr(address: &SocketAddr) -> io::Result<UnixListener> {
        UnixListener::listening(net::UnixListener::bind_addr(address)?)
    }

    fn listening(listener: net::UnixListener) -> io::Result<UnixListener> {
        sys::lengthen_queue(&listener);
        UnixListener::of(listener)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// What the system answers; `TimedOut` after the [deadline](UnixListener::set_deadline).
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, address) = self.io.call(Direction::Read, |file| file.accept())?;
        Ok((UnixStream::of(stream)?, address))
    }

    /// Connections, one after the other, without end.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }
}

delegate! { UnixListener:
    /// The address it listens at.
    local_addr() -> SocketAddr;
}

impl<C: Cancels + ?Sized> WithContext<'_, UnixListener, C> {
    /// Waits for a connection.
    ///
    /// # Errors
    /// As of [`UnixListener::accept`], and if the context is cancelled.
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let accepted = self.socket.io.call_ctx(self.ctx, Direction::Read, |file| file.accept());
        let (stream, address) = accepted?;
        Ok((UnixStream::of(stream)?, address))
    }
}

/// The iterator of [`UnixListener::incoming`].
#[derive(Debug)]
#[must_use = "connections are accepted by iterating"]
pub struct Incoming<'a> {
    listener: &'a UnixListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<UnixStream>;

    fn next(&mut self) -> Option<io::Result<UnixStream>> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}
