//! Sockets in the shape of `std::net`: a goroutine that waits for one costs no thread.
//!
//! `use std::net::TcpStream` becomes `use gosched::net::TcpStream`. Types convert from and to std's,
//! and work on plain threads too.
//!
//! ```
//! use gosched::net::{TcpListener, TcpStream};
//! use std::io::{self, Read, Write};
//!
//! fn main() -> io::Result<()> {
//!     gosched::run(|| {
//!         let listener = TcpListener::bind("127.0.0.1:0")?;
//!         let address = listener.local_addr()?;
//!         let server = gosched::go(move || -> io::Result<()> {
//!             let (mut stream, _) = listener.accept()?;
//!             io::copy(&mut stream.try_clone()?, &mut stream)?; // until the client is done
//!             Ok(())
//!         });
//!
//!         let mut client = TcpStream::connect(address)?;
//!         client.write_all(b"hello")?;
//!         client.shutdown(std::net::Shutdown::Write)?;
//!         let mut echo = String::new();
//!         client.read_to_string(&mut echo)?;
//!         assert_eq!(echo, "hello");
//!         server.join().unwrap()
//!     })
//! }
//! ```
//!
//! # Differences from std
//!
//! * Time-outs set by `set_read_timeout` and `set_write_timeout` belong to the value, not to the
//!   socket: a clone takes them over when it is made.
//! * A call whose time is over fails with `TimedOut` (std on Linux: `WouldBlock`).
//! * `set_deadline` and its like, and `close`, are Go's: they act on calls that wait already.
//! * `with_context` gives a socket whose calls end with a context.
//! * Underneath every socket is nonblocking, which shows to who works on its descriptor directly.

pub use gosched_net::unix::{UnixDatagram, UnixListener, UnixStream};
pub use gosched_net::{
    AddrParseError, Cancelled, Direction, Incoming, IpAddr, Ipv4Addr, Ipv6Addr, Pollable, Shutdown,
    SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener, TcpStream, ToSocketAddrs, UdpSocket,
    WithContext, is_cancelled,
};
