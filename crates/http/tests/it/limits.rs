//! Limits.

use crate::fixture::{Fixture, patient, route, statuses};
use gosched_http::{Handle, Response, Server};
use std::sync::{Arc, OnceLock};

/// A request whose head has exactly so many bytes.
fn head_of(bytes: usize) -> Vec<u8> {
    let front = "GET / HTTP/1.1\r\nHost: x\r\na: ";
    let fill = bytes - front.len() - 4;
    format!("{front}{}\r\n\r\n", "b".repeat(fill)).into_bytes()
}

#[gosched::test(timeout = "240s")]
fn of_the_head() {
    for limit in [64, 4 << 10, 100_000] {
        let server = Fixture::of(patient(Server::new(route).max_head_bytes(limit)));
        for piece in [1 << 20, 100] {
            let talk = |bytes| statuses(&server.talk_in_pieces(&head_of(bytes), piece));
            assert_eq!(talk(limit), [200]);
            assert_eq!(talk(limit + 1), [431]);
            assert_eq!(talk(2 * limit + 9_999), [431]);
        }
        let line = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(limit));
        assert_eq!(statuses(&server.talk(line.as_bytes())), [414]);
        server.stop();
    }
}

#[gosched::test(timeout = "120s")]
fn of_the_fields() {
    let server = Fixture::of(patient(Server::new(route).max_headers(3)));
    let with = |fields: &str| {
        statuses(&server.talk(format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes()))
    };
    assert_eq!(with("a: b\r\na: b\r\n"), [200]);
    assert_eq!(with("a: b\r\na: b\r\na: b\r\n"), [431]);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_the_body() {
    let server = Fixture::of(patient(Server::new(route).max_body_bytes(3)));
    let post = |rest: &str| {
        statuses(&server.talk(format!("POST /echo HTTP/1.1\r\nHost: x\r\n{rest}").as_bytes()))
    };
    assert_eq!(post("Content-Length: 3\r\n\r\nabc"), [200]);
    assert_eq!(post("Content-Length: 4\r\n\r\nabcd"), [413]);
    assert_eq!(post("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), [200]);
    assert_eq!(post("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"), [413]);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_the_connections() {
    const MOST: usize = 2;
    let handle = Arc::new(OnceLock::<Handle>::new());
    let known = handle.clone();
    let server = Server::new(move |_| {
        Response::text(known.get().map_or(0, Handle::connections).to_string())
    });
    let server = patient(server.max_connections(MOST));
    assert!(handle.set(server.handle()).is_ok());
    let server = Arc::new(Fixture::of(server));
    let clients: Vec<_> = (0..16)
        .map(|_| {
            let server = server.clone();
            gosched::go(move || server.get("/").body)
        })
        .collect();
    for client in clients {
        let body = String::from_utf8(client.join().unwrap()).unwrap();
        let seen: usize = body.parse().unwrap();
        assert!((1..=MOST).contains(&seen), "{seen}");
    }
    Arc::into_inner(server).unwrap().stop();
}
