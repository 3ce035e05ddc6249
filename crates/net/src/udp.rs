//! UDP.

use crate::common::{delegate, socket};
use crate::connect::each_address;
use crate::pollable::Pollable;
use crate::resolve::resolve;
use crate::with_context::calls_with_context;
use gosched_sched::Direction;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// A UDP socket. std's `UdpSocket`.
///
/// ```
/// use gosched_net::UdpSocket;
///
/// gosched_sched::run(|| {
///     let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
///     a.send_to(b"hello", b.local_addr().unwrap()).unwrap();
///     let mut buffer = [0; 16];
///     let (n, from) = b.recv_from(&mut buffer).unwrap();
///     assert_eq!((&buffer[..n], from), (&b"hello"[..], a.local_addr().unwrap()));
/// });
/// ```
pub struct UdpSocket {
    io: Pollable<std::net::UdpSocket>,
}

socket!(UdpSocket, std::net::UdpSocket, timeouts: both);

impl UdpSocket {
    /// A socket at the first of the addresses that is free.
    ///
    /// # Errors
    /// The name has no address, or the error of the last address tried.
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<UdpSocket> {
        each_address(resolve(&address)?, |address| {
            UdpSocket::of(std::net::UdpSocket::bind(address)?)
        })
    }

    /// Waits for a datagram: how long it is, and from where. What doesn't fit is lost.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.call(Direction::Read, |file| file.recv_from(buffer))
    }

    /// As [`recv_from`](UdpSocket::recv_from), but the datagram stays.
    ///
    /// # Errors
    /// As of `recv_from`.
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.call(Direction::Read, |file| file.peek_from(buffer))
    }

    /// Sends a datagram to the first of the addresses.
    ///
    /// # Errors
    /// The name has no address; what the system answers; `TimedOut`.
    pub fn send_to<A: ToSocketAddrs>(&self, bytes: &[u8], address: A) -> io::Result<usize> {
        let Some(address) = resolve(&address)?.next() else {
            let words = "no addresses to send data to";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        };
        self.io.call(Direction::Write, |file| file.send_to(bytes, address))
    }

    /// Sets where [`send`](UdpSocket::send) sends to, and from where alone datagrams are taken: the
    /// first of the addresses that works.
    ///
    /// # Errors
    /// The name has no address, or the error of the last address tried.
    pub fn connect<A: ToSocketAddrs>(&self, address: A) -> io::Result<()> {
        each_address(resolve(&address)?, |address| self.io.get_ref().connect(address))
    }

    /// Sends a datagram to where it is connected.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.io.call(Direction::Write, |file| file.send(bytes))
    }

    /// Waits for a datagram from where it is connected.
    ///
    /// # Errors
    /// What the system answers; `TimedOut`.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| file.recv(buffer))
    }

    /// As [`recv`](UdpSocket::recv), but the datagram stays.
    ///
    /// # Errors
    /// As of `recv`.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| file.peek(buffer))
    }
}

delegate! { UdpSocket:
    /// Where it is connected.
    peer_addr() -> SocketAddr;
    /// Its own address.
    local_addr() -> SocketAddr;
    /// Whether it may send to broadcast addresses.
    set_broadcast(broadcast: bool) -> ();
    /// Whether it may send to broadcast addresses.
    broadcast() -> bool;
    /// Whether it gets its own multicasts.
    set_multicast_loop_v4(on: bool) -> ();
    /// Whether it gets its own multicasts.
    multicast_loop_v4() -> bool;
    /// How many routers a multicast may pass.
    set_multicast_ttl_v4(ttl: u32) -> ();
    /// How many routers a multicast may pass.
    multicast_ttl_v4() -> u32;
    /// Whether it gets its own multicasts.
    set_multicast_loop_v6(on: bool) -> ();
    /// Whether it gets its own multicasts.
    multicast_loop_v6() -> bool;
    /// How many routers a packet may pass.
    set_ttl(ttl: u32) -> ();
    /// How many routers a packet may pass.
    ttl() -> u32;
    /// Joins a group, at the interface with this address.
    join_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
    /// Joins a group, at the interface with this number.
    join_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
    /// Leaves a group.
    leave_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
    /// Leaves a group.
    leave_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
}

calls_with_context! { UdpSocket:
    /// Waits for a datagram: how long it is, and from where.
    Read recv_from(buffer: &mut [u8]) -> (usize, SocketAddr) = |file| file.recv_from(buffer);
    /// Waits for a datagram from where it is connected.
    Read recv(buffer: &mut [u8]) -> usize = |file| file.recv(buffer);
    /// Sends a datagram to where it is connected.
    Write send(bytes: &[u8]) -> usize = |file| file.send(bytes);
}
