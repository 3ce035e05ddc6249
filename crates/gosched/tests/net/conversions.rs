//! From and to std's types.

use super::pairs::tcp_pair;
use gosched::go;
use gosched::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

fn is_nonblocking(file: &impl AsRawFd) -> bool {
    // SAFETY: no memory is passed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    flags & libc::O_NONBLOCK != 0
}

#[gosched::test(timeout = "300s")]
fn to_std_and_back() {
    let (mut a, b) = tcp_pair();
    b.set_read_timeout(Some(Duration::from_secs(7))).unwrap();
    // Registered with the poller by then.
    let b = go(move || {
        (&b).read_exact(&mut [0]).unwrap();
        b
    });
    gosched::thread::yield_now();
    a.write_all(b"x").unwrap();
    let std_b = std::net::TcpStream::from(b.join().unwrap());
    assert!(!is_nonblocking(&std_b));
    assert_eq!(std_b.read_timeout().unwrap(), Some(Duration::from_secs(7)));

    // std's waits, with a thread of its own.
    let thread = std::thread::spawn(move || {
        (&std_b).read_exact(&mut [0]).unwrap();
        std_b
    });
    a.write_all(b"y").unwrap();
    let mut back = TcpStream::from(thread.join().unwrap());
    assert!(is_nonblocking(&back));
    assert_eq!(back.read_timeout().unwrap(), Some(Duration::from_secs(7)));
    a.write_all(b"z").unwrap();
    let mut byte = [0];
    back.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"z");
}

#[gosched::test(timeout = "300s")]
fn the_users_mode_is_kept() {
    let (a, _b) = tcp_pair();
    a.set_nonblocking(true).unwrap();
    assert!(is_nonblocking(&std::net::TcpStream::from(a)));
}

#[gosched::test(timeout = "300s")]
fn every_type_is_a_descriptor() {
    fn check<T: AsFd + AsRawFd + IntoRawFd + Into<OwnedFd> + From<OwnedFd>>(socket: T) {
        let number = socket.as_raw_fd();
        assert_eq!(socket.as_fd().as_raw_fd(), number);
        let owned: OwnedFd = socket.into();
        assert_eq!(owned.as_raw_fd(), number);
        let socket = T::from(owned);
        let number = socket.into_raw_fd();
        // SAFETY: the number is ours now.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }
    check(tcp_pair().0);
    check(TcpListener::bind("127.0.0.1:0").unwrap());
    check(UdpSocket::bind("127.0.0.1:0").unwrap());
    check(UnixStream::pair().unwrap().0);
    check(UnixListener::bind(super::listeners::fresh_path()).unwrap());
    check(UnixDatagram::pair().unwrap().0);
}
