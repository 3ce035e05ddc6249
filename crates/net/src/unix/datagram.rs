//! Unix datagram sockets.

use super::SocketAddr;
use crate::common::{delegate, socket};
use crate::pollable::Pollable;
use crate::with_context::calls_with_context;
use gosched_sched::Direction;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::unix::net;
use std::path::Path;
use std::time::Instant;

/// A Unix datagram socket. std's `UnixDatagram`.
///
/// ```
/// use gosched_net::unix::UnixDatagram;
///
/// gosched_sched::run(|| {
///     let (a, b) = UnixDatagram::pair().unwrap();
///     a.send(b"hello").unwrap();
///     let mut buffer = [0; 16];
///     let n = b.recv(&mut buffer).unwrap();
///     assert_eq!(&buffer[..n], b"hello");
/// });
/// ```
pub struct UnixDatagram {
    io: Pollable<net::UnixDatagram>,
}

socket!(UnixDatagram, net::UnixDatagram, timeouts: both);

impl UnixDatagram {
    /// A socket at `path`, which must not exist.
    ///
    /// # Errors
    /// What the system answers.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixDatagram> {
        UnixDatagram::of(net::UnixDatagram::bind(path)?)
    }

    /// As [`bind`](UnixDatagram::bind), at an address.
    ///
    /// # Errors
    /// What the system answers.
    pub fn bind_addr(address: &SocketAddr) -> io::Result<UnixDatagram> {
        UnixDatagram::of(net::UnixDatagram::bind_addr(address)?)
    }

    /// A socket without an address.
    ///
    /// # Errors
    /// Too many open files.
    pub fn unbound() -> io::Result<UnixDatagram> {
        UnixDatagram::of(net::UnixDatagram::unbound()?)
    }

    /// Two sockets that are connected with each other.
    ///
    /// # Errors
    /// Too many open files.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (a, b) = net::UnixDatagram::pair()?;
        Ok((UnixDatagram::of(a)?, UnixDatagram::of(b)?))
    }

    /// Sets where [`send`](UnixDatagram::send) sends to.
    ///
    /// # Errors
    /// What the system answers.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        self.io.get_ref().connect(path)
    }

    /// Waits for a datagram: how long it is, and from where. What doesn't fit is lost.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.call(Direction::Read, |file| file.recv_from(buffer))
    }

    /// Waits for a datagram.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| file.recv(buffer))
    }

    /// Sends a datagram to where it is connected.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.io.call(Direction::Write, |file| file.send(bytes))
    }

    /// Sends a datagram to the socket at `path`.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn send_to<P: AsRef<Path>>(&self, bytes: &[u8], path: P) -> io::Result<usize> {
        let path = path.as_ref();
        self.send_unconnected(|file| file.send_to(bytes, path), |probe| probe.connect(path))
    }

    /// Sends a datagram to an address.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn send_to_addr(&self, bytes: &[u8], address: &SocketAddr) -> io::Result<usize> {
        self.send_unconnected(
            |file| file.send_to_addr(bytes, address),
            |probe| probe.connect_addr(address),
        )
    }

    /// Sends, and waits while the receiver's queue is full.
    ///
    /// The kernel tells about another socket's queue only who is connected with it, so the wait is
    /// on a second socket that is connected. A deadline that is moved meanwhile counts from the next
    /// call on.
    fn send_unconnected(
        &self,
        send: impl Fn(&net::UnixDatagram) -> io::Result<usize>,
        connect: impl Fn(&net::UnixDatagram) -> io::Result<()>,
    ) -> io::Result<usize> {
        let end = self.io.timeout(Direction::Write).and_then(|t| Instant::now().checked_add(t));
        let mut probe = None;
        loop {
            // The first half of a call: without a wait.
            let result = self.io.try_call(Direction::Write, &send);
            match result {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            if self.io.returns_at_once() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let probe = match &mut probe {
                Some(probe) => probe,
                none => {
                    let socket = net::UnixDatagram::unbound()?;
                    socket.set_nonblocking(true)?;
                    connect(&socket)?;
                    none.insert(self.io.like(socket))
                }
            };
            probe.wait(Direction::Write, end)?;
        }
    }

    /// Ends reads, writes, or both; calls that wait return.
    ///
    /// # Errors
    /// A socket that is not connected.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let result = self.io.get_ref().shutdown(how);
        self.io.look_again(Direction::Read);
        self.io.look_again(Direction::Write);
        result
    }
}

delegate! { UnixDatagram:
    /// Sets where [`send`](UnixDatagram::send) sends to.
    connect_addr(address: &SocketAddr) -> ();
    /// Its own address.
    local_addr() -> SocketAddr;
    /// Where it is connected.
    peer_addr() -> SocketAddr;
}

calls_with_context! { UnixDatagram:
    /// Waits for a datagram: how long it is, and from where.
    Read recv_from(buffer: &mut [u8]) -> (usize, SocketAddr) = |file| file.recv_from(buffer);
    /// Waits for a datagram.
    Read recv(buffer: &mut [u8]) -> usize = |file| file.recv(buffer);
    /// Sends a datagram to where it is connected.
    Write send(bytes: &[u8]) -> usize = |file| file.send(bytes);
}
