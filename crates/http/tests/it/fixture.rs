//! A server with a few routes, and ways to talk to it.

use gosched::net::{Shutdown, TcpListener, TcpStream};
use gosched::thread::JoinHandle;
use gosched_http::client::{Answer, Asked, Connection};
use gosched_http::{Handle, Request, Response, Server};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than any machine stalls: a time-out that must not be what ends a test.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// What `/` answers.
pub(crate) const HELLO: &str = "Hello, World!";

/// A server that runs.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    served: JoinHandle<io::Result<()>>,
}

impl Fixture {
    /// With the routes of [`route`], and time-outs that never come.
    pub(crate) fn start() -> Fixture {
        Fixture::of(patient(Server::new(route)))
    }

    pub(crate) fn of<H>(server: Server<H>) -> Fixture
    where
        H: Fn(&mut Request<'_>) -> Response + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let handle = server.handle();
        Fixture { address, handle, served: gosched::go(move || server.serve(listener)) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks over a connection of its own, however long it takes.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        Connection::new(self.connect()).exchange(request.as_bytes(), Asked::Body).unwrap()
    }

    /// Sends the bytes, ends the sending side, and returns all that comes back.
    pub(crate) fn talk(&self, bytes: &[u8]) -> String {
        self.talk_in_pieces(bytes, bytes.len().max(1))
    }

    pub(crate) fn talk_in_pieces(&self, bytes: &[u8], piece: usize) -> String {
        let mut stream = self.connect();
        for part in bytes.chunks(piece) {
            // The server may have had enough.
            if stream.write_all(part).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
        read_all(&mut stream)
    }

    /// Shuts it down, and waits until it has.
    pub(crate) fn stop(self) {
        self.handle.shutdown();
        self.join();
    }

    pub(crate) fn join(self) {
        self.served.join().unwrap().unwrap();
        assert_eq!(self.handle.connections(), 0);
    }
}

/// All that comes, without the fields that change.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // What came before a reset counts.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect()
}

/// The statuses of all answers in a text.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    let starts = text.split("HTTP/1.1 ").skip(1);
    starts.map(|answer| answer[..3].parse().unwrap()).collect()
}

pub(crate) fn patient<H>(server: Server<H>) -> Server<H>
where
    H: Fn(&mut Request<'_>) -> Response + Send + Sync + 'static,
{
    server.header_timeout(NEVER).body_timeout(NEVER).idle_timeout(NEVER).write_timeout(NEVER)
}

pub(crate) fn route(req: &mut Request<'_>) -> Response {
    match req.path() {
        "/" => Response::text(HELLO),
        "/ignore" => Response::text("ignored"),
        "/echo" => match req.read_body() {
            Ok(body) => Response::bytes(body),
            // The server says what was wrong.
            Err(_) => Response::text("never seen"),
        },
        "/query" => Response::text(req.query().unwrap_or("none").to_owned()),
        "/close" => Response::text("bye").close(),
        "/empty" => Response::new(204),
        "/cached" => Response::new(304).header("ETag", "\"1\""),
        "/large" => Response::text("x".repeat(1 << 20)),
        "/stream" => Response::stream(|out| {
            out.write_all(b"one")?;
            out.flush()?;
            out.flush()?;
            out.write_all(b"two")
        }),
        "/broken" => Response::stream(|out| {
            out.write_all(b"one")?;
            out.flush()?;
            Err(io::Error::other("no more"))
        }),
        "/panic" => panic!("as asked"),
        "/panic-late" => Response::stream(|_| panic!("as asked")),
        "/injection" => Response::text("x").header("A", "b\r\nC: d"),
        _ => Response::not_found(),
    }
}
