//! `gosched serve`, asked over real sockets.

use crate::gosched::gosched;
use gosched_http::client::{Answer, Asked, Connection};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HEAVY: &[u8] = b"Heavy task result: 49999995000000";
const LIGHT: &[u8] = b"Hello, World!";

/// A server in a process of its own, killed if the test ends before it does.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
    /// Empty without debug pages.
    debug_address: String,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gosched"))
            .args(["serve", "--addr", "127.0.0.1:0"])
            .args(options)
            .env("GOMAXPROCS", "2")
            .env_remove("GOSCHED")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut after = |prefix: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let rest = line.trim_end().strip_prefix(prefix);
            rest.unwrap_or_else(|| panic!("a line {line:?}")).to_owned()
        };
        let address = after("listening on http://");
        let debug_address = match options.contains(&"--debug") {
            true => after("debug pages at http://").trim_end_matches("/debug/").to_owned(),
            false => String::new(),
        };
        Server { child, stdout, address, debug_address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn debug_address(&self) -> &str {
        &self.debug_address
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.connect().exchange(&request(path), Asked::Body).unwrap()
    }

    pub(crate) fn get_debug(&self, path: &str) -> Answer {
        self.connect_debug().exchange(&request(path), Asked::Body).unwrap()
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::new(gosched::net::TcpStream::connect(&self.address).unwrap())
    }

    pub(crate) fn connect_debug(&self) -> Connection {
        Connection::new(gosched::net::TcpStream::connect(&self.debug_address).unwrap())
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Waits for its end.
    fn code(mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        code
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

#[test]
fn answers() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/").body, LIGHT);
    assert_eq!(server.get("/heavy").body, HEAVY);
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/none").status, 404);
    let stats: serde_json::Value = serde_json::from_slice(&server.get("/stats").body).unwrap();
    assert_eq!(stats["procs"], 2);
    assert!(stats["goroutines"].as_u64() > Some(0), "{stats}");
    assert!(stats["scheduled"].as_u64() > Some(0), "{stats}");
    let post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(server.connect().exchange(post, Asked::Body).unwrap().status, 405);
}

/// Both halves come up, and neither is rare.
#[test]
fn mixed_is_now_and_then_heavy() {
    let server = Server::start(&[]);
    let mut connection = server.connect();
    let (mut light, mut heavy) = (0, 0);
    while light < 20 || heavy < 3 {
        let answer = connection.exchange(&request("/mixed"), Asked::Body).unwrap();
        match &answer.body[..] {
            LIGHT => light += 1,
            HEAVY => heavy += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(light > heavy, "{light} light, {heavy} heavy");
}

#[test]
fn too_many_goroutines_are_not_healthy() {
    let server = Server::start(&["--max-goroutines", "0"]);
    assert_eq!(server.get("/healthz").status, 503);
    assert_eq!(server.get("/").status, 200);
}

/// Clients ask until some were computed for and some were turned away.
#[test]
fn a_full_queue_is_told() {
    let server = Server::start(&["--cpu-limit", "1", "--queue", "0"]);
    let (computed, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (computed, refused) = (computed.clone(), refused.clone());
            let mut connection = server.connect();
            gosched::go(move || {
                while computed.load(Relaxed) < 5 || refused.load(Relaxed) < 5 {
                    let answer = connection.exchange(&request("/heavy"), Asked::Body).unwrap();
                    match answer.status {
                        200 => computed.fetch_add(1, Relaxed),
                        503 => {
                            assert_eq!(answer.header("retry-after"), Some("1"));
                            refused.fetch_add(1, Relaxed)
                        }
                        other => panic!("{other}"),
                    };
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    // Light ones have no queue.
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn signals_end_it_with_idle_connections() {
    for name in ["INT", "TERM"] {
        let server = Server::start(&[]);
        let mut idle = server.connect();
        assert_eq!(idle.exchange(&request("/"), Asked::Body).unwrap().status, 200);
        server.signal(name);
        assert_eq!(server.code(), Some(0));
        assert!(idle.exchange(&request("/"), Asked::Body).is_err());
    }
}

/// Each client's last answer is whole or never began.
#[test]
fn a_signal_under_load() {
    let server = Server::start(&["--grace", "86400"]);
    let answered = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let answered = answered.clone();
            let mut connection = server.connect();
            gosched::go(move || {
                while let Ok(answer) = connection.exchange(&request("/mixed"), Asked::Body) {
                    assert!(answer.body == LIGHT || answer.body == HEAVY);
                    answered.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    while answered.load(Relaxed) < 100 {
        std::thread::yield_now();
    }
    server.signal("TERM");
    assert_eq!(server.code(), Some(0));
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn an_address_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = gosched(["serve", "--addr", &address]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains(&format!("can't listen at {address}")), "{}", run.stderr);
}
