//! Sockets in the shape of std's: a goroutine that waits for one costs no thread.
//!
//! Layer: `net`. Uses `base` and `sched`. The sockets are std's own, switched to nonblocking; what
//! is added is the wait, so every method that never waits is std's.
//!
//! Reading order: a file that waits ([`Pollable`]), with whose turn it is (`turn`) and until when
//! (`side`); the socket types; how a connection is made (`connect`).
//!
//! Go's counterpart is `internal/poll` with `net`.
//!
//! # Differences from std
//!
//! * [`TcpStream::set_read_timeout`] and its like count for the value they are called on: the
//!   kernel doesn't know them, so a clone made before keeps its own.
//! * A time-out is [`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut); std has `WouldBlock` on
//!   Linux.
//! * Deadlines and `close` are Go's: they act on calls that wait already.
//! * Underneath every socket is nonblocking. That shows to who works on its descriptor directly.
// The model takes the file that it needs, see `tests/loom_turn.rs`.
#![cfg(not(loom))]

mod common;
mod connect;
mod pollable;
mod resolve;
mod rt;
mod side;
mod sys;
mod tcp;
mod turn;
mod udp;
pub mod unix;
mod with_context;

pub use pollable::Pollable;
pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use with_context::{WithContext, is_cancelled};

pub use gosched_sched::{Cancelled, Direction};
pub use std::net::{
    AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6,
    ToSocketAddrs,
};
