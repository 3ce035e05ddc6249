//! The server: accepts, and gives each connection a goroutine.

use crate::config::{Config, positive};
use crate::connection;
use crate::head::FIELDS_MAX;
use crate::request::Request;
use crate::response::Response;
use crate::table::{Listening, Table};
use gosched::net::{TcpListener, TcpStream};
use gosched::sync::Arc;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long accepting pauses when the system has no descriptors or no memory left.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves HTTP/1.1 with the usual limits, a goroutine for each connection. Go's `http.Serve`.
///
/// Returns only when the listener fails; [`Server`] can be shut down.
///
/// ```no_run
/// use gosched::net::TcpListener;
/// use gosched_http::{Response, serve};
///
/// #[gosched::main]
/// fn main() -> std::io::Result<()> {
///     serve(TcpListener::bind("127.0.0.1:8080")?, |req| match req.path() {
///         "/" => Response::text("Hello, World!\n"),
///         _ => Response::not_found(),
///     })
/// }
/// ```
///
/// # Errors
/// The listener's.
pub fn serve<H>(listener: TcpListener, handler: H) -> io::Result<()>
where
    H: Fn(&mut Request<'_>) -> Response + Send + Sync + 'static,
{
    Server::new(handler).serve(listener)
}

/// A server with limits of its own, which can be shut down. Go's `http.Server`.
///
/// The handler runs in the goroutine of the connection and may block in any way. If it panics its
/// client gets 500, and that connection ends.
///
/// ```
/// use gosched::net::TcpListener;
/// use gosched_http::{Response, Server, client};
///
/// # fn main() -> std::io::Result<()> {
/// gosched::run(|| {
///     let server = Server::new(|_| Response::text("Hello, World!\n")).max_body_bytes(64 << 10);
///     let handle = server.handle();
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let address = listener.local_addr()?;
///     let served = gosched::go(move || server.serve(listener));
///
///     let answer = client::get(&format!("http://{address}/"))?;
///     assert_eq!((answer.status, &answer.body[..]), (200, &b"Hello, World!\n"[..]));
///
///     handle.shutdown();
///     served.join().unwrap()
/// })
/// # }
/// ```
pub struct Server<H> {
    handler: Arc<H>,
    config: Config,
    table: Arc<Table>,
}

impl<H> Server<H>
where
    H: Fn(&mut Request<'_>) -> Response + Send + Sync + 'static,
{
    /// With the usual limits.
    pub fn new(handler: H) -> Server<H> {
        Server {
            handler: Arc::new(handler),
            config: Config::DEFAULT,
            table: Arc::new(Table::new()),
        }
    }

    /// The longest head, 16 KiB unless set; a longer one gets 431, or 414 if its first line alone
    /// is. Trailers have as much again.
    #[must_use]
    pub fn max_head_bytes(mut self, bytes: usize) -> Self {
        self.config.head_bytes = bytes;
        self
    }

    /// The most fields of a head, 100 unless set, 128 at most; more get 431.
    #[must_use]
    pub fn max_headers(mut self, fields: usize) -> Self {
        self.config.fields = fields.min(FIELDS_MAX);
        self
    }

    /// The longest body of a request, 1 MiB unless set; a longer one gets 413.
    #[must_use]
    pub fn max_body_bytes(mut self, bytes: u64) -> Self {
        self.config.body_bytes = bytes;
        self
    }

    /// The most connections at once, 65,536 unless set. More wait in the listener's queue.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    #[track_caller]
    pub fn max_connections(mut self, connections: usize) -> Self {
        assert!(connections > 0, "a server without connections");
        self.config.connections = connections;
        self
    }

    /// How long a head may take from its first byte to its last, 10 s unless set; then 408.
    ///
    /// # Panics
    /// If it is zero, as for the other time-outs.
    #[must_use]
    #[track_caller]
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.config.header = positive(timeout);
        self
    }

    /// How long a body may take from the first wait for it to the last, 5 min unless set; then 408.
    #[must_use]
    #[track_caller]
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.config.body = positive(timeout);
        self
    }

    /// How long a write may wait for a client that doesn't read, 30 s unless set; then the
    /// connection ends.
    #[must_use]
    #[track_caller]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.config.write = positive(timeout);
        self
    }

    /// How long a connection may be without a request, 75 s unless set; then it is closed. A new one
    /// has this or [`header_timeout`](Server::header_timeout), whichever is longer.
    #[must_use]
    #[track_caller]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.config.idle = positive(timeout);
        self
    }

    /// What shuts the server down, from anywhere.
    pub fn handle(&self) -> Handle {
        Handle { table: self.table.clone() }
    }

    /// Serves what comes in at the listener. May be called for several listeners at once.
    ///
    /// Returns after [`Handle::shutdown`], when all connections of the server have ended.
    ///
    /// # Errors
    /// The listener's.
    pub fn serve(&self, listener: TcpListener) -> io::Result<()> {
        let listening = self.table.listen(listener);
        let accepted = self.accept(&listening);
        drop(listening);
        accepted?;
        self.table.wait_until_empty(None);
        Ok(())
    }

    fn accept(&self, listening: &Listening) -> io::Result<()> {
        loop {
            self.table.wait_for_room(self.config.connections);
            let error = match listening.listener.accept() {
                Ok((stream, peer)) => {
                    self.spawn(stream, peer);
                    continue;
                }
                Err(error) => error,
            };
            match error.kind() {
                // From now on the deadline is of no use: nothing waits any more.
                ErrorKind::TimedOut if self.table.is_ending() => {
                    listening.listener.set_deadline(None);
                }
                ErrorKind::WouldBlock => return Ok(()),
                // The client went away before it was accepted.
                ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                _ if is_passing(&error) => gosched::time::sleep(PAUSE),
                _ => return Err(error),
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: SocketAddr) {
        let place = self.table.enter(stream, peer);
        let (config, handler) = (self.config, self.handler.clone());
        let serve = move || connection::serve(&place.connected, &config, &*handler);
        // Without memory for a goroutine the connection ends; the accepting one must not.
        let _ = gosched::thread::Builder::new().spawn(serve);
    }
}

/// Too many open files here or in the system, no buffers, no memory: some are given back one day.
fn is_passing(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

impl<H> fmt::Debug for Server<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Shuts a [`Server`] down.
#[derive(Clone, Debug)]
pub struct Handle {
    table: Arc<Table>,
}

impl Handle {
    /// Accepts no more connections, ends the idle ones, and the others after the request that they
    /// have. Returns at once. Go's `Server.Shutdown`.
    ///
    /// What a client has sent before is answered, if it has arrived.
    pub fn shutdown(&self) {
        self.table.end();
    }

    /// As [`shutdown`](Handle::shutdown), but ends all connections at once. Go's `Server.Close`.
    ///
    /// Handlers that run are not stopped; their answers go nowhere.
    pub fn close(&self) {
        self.table.close();
    }

    /// Waits until the server has shut down, for `timeout` at most; returns whether it has.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.table.wait_until_empty(Instant::now().checked_add(timeout))
    }

    /// How many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }
}
