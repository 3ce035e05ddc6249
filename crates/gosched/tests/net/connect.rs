//! Connections that are being made.

use super::pairs::until_waiting;
use gosched::go;
use gosched::net::{Direction, Pollable, TcpListener, TcpStream, UnixListener};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

#[gosched::test(timeout = "300s")]
fn nobody_listens() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let timeout = Duration::from_secs(10);
    let error = TcpStream::connect_timeout(&address, timeout).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let error = TcpStream::connect_timeout(&address, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// A listener whose queue is full: who connects now waits.
struct Full {
    listener: std::net::TcpListener,
    _queued: Vec<std::net::TcpStream>,
}

impl Full {
    fn new() -> Full {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let mut full = Full { listener, _queued: Vec::new() };
        // The kernel takes one more than it was told.
        while full.queued() == 0 {
            full._queued.push(std::net::TcpStream::connect(full.address()).unwrap());
            // The client may know of it before the listener.
            while full.queued() < full._queued.len() as u32 {
                gosched::thread::yield_now();
            }
        }
        full
    }

    /// How many connections wait to be accepted.
    fn queued(&self) -> u32 {
        // SAFETY: all zeroes is a value of this type.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut size = size_of_val(&info) as libc::socklen_t;
        let (fd, at) = (self.listener.as_raw_fd(), (&raw mut info).cast());
        // SAFETY: room for the option, whose size is stated.
        let done =
            unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &mut size) };
        assert_eq!(done, 0);
        info.tcpi_unacked
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }
}

#[gosched::test(timeout = "300s")]
fn a_connection_that_is_not_answered_times_out() {
    let full = Full::new();
    let timeout = Duration::from_millis(5);
    let error = TcpStream::connect_timeout(&full.address(), timeout).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

/// The kernel calls a socket that was never connected broken and writable: whoever is registered
/// before it connects starts with that in its word, and must not take it for a connection.
#[gosched::test(timeout = "300s")]
fn a_socket_that_was_registered_before_it_connects() {
    let full = Full::new();
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_INET, flags, 0) };
    assert!(fd >= 0);
    // SAFETY: just opened for this.
    let socket = std::net::TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let socket = Pollable::new(socket);
    socket.wait(Direction::Write, None).unwrap();
    assert_eq!(socket.get_ref().peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);

    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: full.address().port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()) },
        sin_zero: [0; 8],
    };
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads the address, whose size is stated.
    let begun = unsafe { libc::connect(fd, (&raw const address).cast(), size) };
    let error = std::io::Error::last_os_error();
    assert_eq!((begun, error.raw_os_error()), (-1, Some(libc::EINPROGRESS)));

    // It is under way, and nobody has accepted it.
    assert!(socket.get_ref().peer_addr().is_err());
    let accepts = go(move || {
        gosched::thread::sleep(Duration::from_millis(5));
        let mut accepted = Vec::new();
        while accepted.len() < full._queued.len() + 1 {
            accepted.push(full.listener.accept().unwrap());
        }
        accepted
    });
    let mut looks = 0;
    while socket.get_ref().peer_addr().is_err() {
        looks += 1;
        socket.wait(Direction::Write, None).unwrap();
        assert!(socket.get_ref().take_error().unwrap().is_none());
    }
    assert!(looks < 10, "{looks} looks: it waits, and is told no more than it needs");
    let mut stream = TcpStream::from(socket.into_inner());
    stream.write_all(b"x").unwrap();
    let accepted = accepts.join().unwrap();
    let mut byte = [0];
    assert_eq!((&accepted.last().unwrap().0).read(&mut byte).unwrap(), 1);
}

/// A Unix socket as well: registered while it is nobody's partner, it is told of what comes later.
#[gosched::test(timeout = "300s")]
fn a_unix_socket_that_was_registered_before_it_connects() {
    let path = super::listeners::fresh_path();
    let listener = UnixListener::bind(&path).unwrap();
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_UNIX, flags, 0) };
    assert!(fd >= 0);
    // SAFETY: just opened for this.
    let socket = std::os::unix::net::UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let socket = Pollable::new(socket);
    // "Broken", says the kernel, and a reader that looks learns that it is not connected.
    socket.wait(Direction::Read, None).unwrap();
    let error = socket.call(Direction::Read, |mut file| file.read(&mut [0; 8])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");

    // SAFETY: all zeroes is a value of this type.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    address.sun_path.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from as libc::c_char);
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads the address, whose size is stated.
    let connected = unsafe { libc::connect(fd, (&raw const address).cast(), size) };
    assert_eq!(connected, 0, "{}", std::io::Error::last_os_error());
    let socket = Arc::new(socket);
    let reader = go({
        let socket = socket.clone();
        move || {
            let mut buffer = [0; 8];
            let n = socket.call(Direction::Read, |mut file| file.read(&mut buffer)).unwrap();
            buffer[..n].to_vec()
        }
    });
    until_waiting(std::slice::from_ref(&reader));
    listener.accept().unwrap().0.write_all(b"later").unwrap();
    assert_eq!(reader.join().unwrap(), b"later");
}

#[gosched::test(timeout = "300s")]
fn names_are_looked_up() {
    let listener = TcpListener::bind(("localhost", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = go(move || TcpStream::connect(("localhost", port)).map(drop));
    listener.accept().unwrap();
    client.join().unwrap().unwrap();
    assert!(TcpStream::connect("no.such.name.invalid:80").is_err());
    let none: &[SocketAddr] = &[];
    assert_eq!(TcpStream::connect(none).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[gosched::test(timeout = "300s")]
fn the_second_address_is_tried() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let open = listener.local_addr().unwrap();
    let stream = TcpStream::connect(&[closed, open][..]).unwrap();
    assert_eq!(stream.peer_addr().unwrap(), open);
}
