//! TCP.

use crate::common::{delegate, socket, stream};
use crate::connect::{connect, each_address};
use crate::pollable::Pollable;
use crate::resolve::resolve;
use crate::sys;
use crate::with_context::WithContext;
use gosched_sched::{Cancels, Direction};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A TCP connection. std's `TcpStream`.
///
/// ```
/// use gosched_net::{TcpListener, TcpStream};
/// use std::io::{Read, Write};
///
/// gosched_sched::run(|| {
///     let listener = TcpListener::bind("127.0.0.1:0").unwrap();
///     let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
///     let (mut server, _) = listener.accept().unwrap();
///     client.write_all(b"hello").unwrap();
///     let mut buffer = [0; 5];
///     server.read_exact(&mut buffer).unwrap();
///     assert_eq!(&buffer, b"hello");
/// });
/// ```
pub struct TcpStream {
    io: Pollable<std::net::TcpStream>,
}

socket!(TcpStream, std::net::TcpStream, timeouts: both);
stream!(TcpStream, short_read_empties: true);

impl TcpStream {
    /// Connects to the first of the addresses that answers.
    ///
    /// Names are looked up by libc, in a declared call; then only the goroutine waits.
    ///
    /// # Errors
    /// The name has no address, or the error of the last address tried.
    pub fn connect<A: ToSocketAddrs>(address: A) -> io::Result<TcpStream> {
        let io = each_address(resolve(&address)?, |address| connect(address, None))?;
        Ok(TcpStream { io })
    }

    /// As [`connect`](TcpStream::connect) to one address, for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut`; `InvalidInput` for a time-out of zero; what the system answers.
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        if timeout.is_zero() {
            let words = "cannot set a 0 duration timeout";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        Ok(TcpStream { io: connect(address, Instant::now().checked_add(timeout))? })
    }

    /// Reads without taking what is read from the socket.
    ///
    /// # Errors
    /// As of `read`.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| file.peek(buffer))
    }
}

delegate! { TcpStream:
    /// The other side's address.
    peer_addr() -> SocketAddr;
    /// This side's address.
    local_addr() -> SocketAddr;
    /// Sends small writes at once, or gathers them (Nagle's algorithm).
    set_nodelay(nodelay: bool) -> ();
    /// Whether small writes are sent at once.
    nodelay() -> bool;
    /// How many routers a packet may pass.
    set_ttl(ttl: u32) -> ();
    /// How many routers a packet may pass.
    ttl() -> u32;
}

/// A TCP socket that connections come in at. std's `TcpListener`.
///
/// Many goroutines may accept from one; each connection goes to one of them.
pub struct TcpListener {
    io: Pollable<std::net::TcpListener>,
}

socket!(TcpListener, std::net::TcpListener, timeouts:);

impl TcpListener {
    /// Listens at the first of the addresses that is free. Its queue is as long as Go's: 4,096
    /// connections, or what the system allows.
    ///
    /// # Errors
    /// The name has no address, or the error of the last address tried.
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<TcpListener> {
        each_address(resolve(&address)?, |address| {
            let listener = std::net::TcpListener::bind(address)?;
            sys::lengthen_queue(&listener);
            TcpListener::of(listener)
        })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// What the system answers: too many open files, after which the connection is still there for
    /// the next call; `TimedOut` after the [deadline](TcpListener::set_deadline).
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, address) = self.io.call(Direction::Read, |file| file.accept())?;
        Ok((TcpStream::of(stream)?, address))
    }

    /// Connections, one after the other, without end.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }
}

delegate! { TcpListener:
    /// The address it listens at.
    local_addr() -> SocketAddr;
    /// How many routers a packet of its connections may pass.
    set_ttl(ttl: u32) -> ();
    /// How many routers a packet of its connections may pass.
    ttl() -> u32;
}

impl<C: Cancels + ?Sized> WithContext<'_, TcpListener, C> {
    /// Waits for a connection.
    ///
    /// # Errors
    /// As of [`TcpListener::accept`], and if the context is cancelled.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self.socket.io.call_ctx(self.ctx, Direction::Read, |file| file.accept());
        let (stream, address) = accepted?;
        Ok((TcpStream::of(stream)?, address))
    }
}

/// The iterator of [`TcpListener::incoming`].
#[derive(Debug)]
#[must_use = "connections are accepted by iterating"]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}
