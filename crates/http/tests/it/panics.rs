//! Handlers that panic.

use crate::fixture::{Fixture, HELLO, statuses};
use gosched_http::client::{Asked, Connection};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[gosched::test(timeout = "120s")]
fn end_their_connection_and_no_other() {
    let server = Fixture::start();
    let mut other = Connection::new(server.connect());
    assert_eq!(other.exchange(GET, Asked::Body).unwrap().body, HELLO.as_bytes());
    for path in ["/panic", "/injection"] {
        let two =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let got = server.talk(two.as_bytes());
        assert_eq!(statuses(&got), [500], "{got}");
        assert!(got.contains("\r\nConnection: close\r\n"), "{got}");
    }
    assert_eq!(other.exchange(GET, Asked::Body).unwrap().body, HELLO.as_bytes());
    drop(other);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn in_a_body_end_it_early() {
    let server = Fixture::start();
    let got = server.talk(b"GET /panic-late HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(!got.contains("0\r\n\r\n"), "{got}");
    server.stop();
}
