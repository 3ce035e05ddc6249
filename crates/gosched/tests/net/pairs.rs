//! Connected sockets of each kind, and what the tests do with all of them alike.

use gosched::net::{TcpListener, TcpStream, UnixStream};
use gosched::thread::JoinHandle;
use std::io::{Read, Result, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// A stream socket of either kind.
pub(crate) trait Stream: Read + Write + Send + Sync + Sized + 'static {
    /// Two that are connected.
    fn pair() -> (Self, Self);
    fn try_clone(&self) -> Result<Self>;
    fn shutdown(&self, how: Shutdown) -> Result<()>;
    fn close(&self);
    fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()>;
    fn set_write_timeout(&self, timeout: Option<Duration>) -> Result<()>;
    fn set_read_deadline(&self, deadline: Option<Instant>);
    fn set_write_deadline(&self, deadline: Option<Instant>);
    fn set_nonblocking(&self, nonblocking: bool) -> Result<()>;
    /// `Read` and `Write` of references.
    fn read_shared(&self, buffer: &mut [u8]) -> Result<usize>;
    fn write_shared(&self, bytes: &[u8]) -> Result<usize>;
}

macro_rules! stream {
    ($type:ty, $pair:expr) => {
        impl Stream for $type {
            fn pair() -> (Self, Self) {
                $pair
            }
            fn try_clone(&self) -> Result<Self> {
                self.try_clone()
            }
            fn shutdown(&self, how: Shutdown) -> Result<()> {
                self.shutdown(how)
            }
            fn close(&self) {
                self.close();
            }
            fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()> {
                self.set_read_timeout(timeout)
            }
            fn set_write_timeout(&self, timeout: Option<Duration>) -> Result<()> {
                self.set_write_timeout(timeout)
            }
            fn set_read_deadline(&self, deadline: Option<Instant>) {
                self.set_read_deadline(deadline);
            }
            fn set_write_deadline(&self, deadline: Option<Instant>) {
                self.set_write_deadline(deadline);
            }
            fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
                self.set_nonblocking(nonblocking)
            }
            fn read_shared(&self, buffer: &mut [u8]) -> Result<usize> {
                (&*self).read(buffer)
            }
            fn write_shared(&self, bytes: &[u8]) -> Result<usize> {
                (&*self).write(bytes)
            }
        }
    };
}

stream!(TcpStream, tcp_pair());
stream!(UnixStream, UnixStream::pair().unwrap());

pub(crate) fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    (client, server)
}

/// A test for each kind of stream.
macro_rules! for_each_stream {
    ($($name:ident),* $(,)?) => {
        mod tcp {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::TcpStream>();
                }
            )*
        }
        mod unix {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::UnixStream>();
                }
            )*
        }
    };
}
pub(crate) use for_each_stream;

/// Waits until all of these goroutines wait for files.
pub(crate) fn until_waiting<T>(goroutines: &[JoinHandle<T>]) {
    let numbers = goroutines.iter().map(|g| g.thread().goroutine_id().unwrap());
    let states: Vec<_> = numbers.map(|number| format!("goroutine {number} [IO wait")).collect();
    loop {
        let mut dump = String::new();
        gosched::runtime::dump(&mut dump).unwrap();
        if states.iter().all(|state| dump.contains(state)) {
            return;
        }
        gosched::thread::sleep(Duration::from_micros(100));
    }
}

/// A small number that differs from call to call.
pub(crate) fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) % below
}
