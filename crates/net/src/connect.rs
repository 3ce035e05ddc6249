//! Making a TCP connection.

use crate::pollable::Pollable;
use crate::sys;
use gosched_sched::Direction;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// Connects to `address`, at most until `deadline`.
pub(crate) fn connect(
    address: &SocketAddr,
    deadline: Option<Instant>,
) -> io::Result<Pollable<TcpStream>> {
    let socket = sys::stream_socket(address)?;
    let is_connected = sys::begin_connect(&socket, address)?;
    let stream = Pollable::new(TcpStream::from(socket));
    if !is_connected {
        wait_for_connection(&stream, deadline)?;
    }
    Ok(stream)
}

fn wait_for_connection(stream: &Pollable<TcpStream>, deadline: Option<Instant>) -> io::Result<()> {
    loop {
        stream.wait(Direction::Write, deadline)?;
        if let Some(error) = stream.get_ref().take_error()? {
            return Err(error);
        }
        // Readiness is a hint: it may be about something before the call.
        match stream.get_ref().peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}

/// Calls `f` with each of the addresses until it succeeds; else the last error.
pub(crate) fn each_address<T>(
    addresses: impl Iterator<Item = SocketAddr>,
    mut f: impl FnMut(&SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for address in addresses {
        match f(&address) {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(ErrorKind::InvalidInput, "could not resolve to any addresses")
    }))
}
