//! The two system calls that std has no nonblocking form of: making a socket and connecting it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A nonblocking stream socket for addresses like `address`.
pub(crate) fn stream_socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(family, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Begins to connect. True: it is connected already; false: it will be writable when it is.
pub(crate) fn begin_connect(socket: &impl AsRawFd, address: &SocketAddr) -> io::Result<bool> {
    let result = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            let size = size_of_val(&raw) as libc::socklen_t;
            // SAFETY: the kernel reads the address, whose size is stated.
            unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), size) }
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            let size = size_of_val(&raw) as libc::socklen_t;
            // SAFETY: as above.
            unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), size) }
        }
    };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Interrupted: it goes on in the background, as if it had not been.
        Some(libc::EINPROGRESS | libc::EINTR) => Ok(false),
        _ => Err(error),
    }
}

/// How many connections may wait to be accepted: Go's number, which the kernel clips to
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Makes the queue of a listener as long as Go's. std's has room for 128, and the kernel throws away
/// what comes beyond that, so that a burst of connections takes seconds.
pub(crate) fn lengthen_queue(listener: &impl AsRawFd) {
    // SAFETY: no memory is passed. It fails for no listener, and then the queue is as it was.
    unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
}

/// Ends both directions, whatever kind of socket it is. A listener's port is free afterwards.
pub(crate) fn shut_down(socket: &impl AsRawFd) {
    // SAFETY: no memory is passed. It fails where there is nothing to end.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}
