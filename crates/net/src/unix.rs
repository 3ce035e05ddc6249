//! Unix sockets, in the shape of `std::os::unix::net`.

mod datagram;
mod stream;

pub use datagram::UnixDatagram;
pub use std::os::unix::net::SocketAddr;
pub use stream::{Incoming, UnixListener, UnixStream};
