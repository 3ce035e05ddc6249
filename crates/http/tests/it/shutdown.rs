//! Shutting down.

use crate::fixture::{Fixture, HELLO, patient, route, statuses};
use gosched::channel::bounded;
use gosched::net::Shutdown;
use gosched_http::client::{Asked, Connection};
use gosched_http::{Response, Server};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[gosched::test(timeout = "120s")]
fn idle_connections_end() {
    let server = Fixture::start();
    let mut used = Connection::new(server.connect());
    assert_eq!(used.exchange(GET, Asked::Body).unwrap().body, HELLO.as_bytes());
    server.handle.shutdown();
    let mut byte = [0];
    assert_eq!(used.stream().read(&mut byte).unwrap(), 0);
    server.join();
}

#[gosched::test(timeout = "120s")]
fn a_request_that_runs_is_answered() {
    let (began, begun) = bounded(1);
    let (go_on, gone_on) = bounded(1);
    let server = Fixture::of(patient(Server::new(move |_| {
        began.send(()).unwrap();
        gone_on.recv().unwrap();
        Response::text(HELLO)
    })));
    let mut connection = Connection::new(server.connect());
    let client = gosched::go(move || connection.exchange(GET, Asked::Body).unwrap());
    begun.recv().unwrap();
    server.handle.shutdown();
    assert_eq!(server.handle.connections(), 1);
    go_on.send(()).unwrap();
    let answer = client.join().unwrap();
    assert_eq!(answer.body, HELLO.as_bytes());
    assert_eq!(answer.header("connection"), Some("close"));
    server.join();
}

/// Both ends of the same thing: every request that came to a handler was answered in full.
#[gosched::test(timeout = "240s")]
fn under_load_no_request_is_lost() {
    const CLIENTS: usize = 16;
    const BEFORE: u64 = 500;
    let handled = Arc::new(AtomicU64::new(0));
    let counted = handled.clone();
    let (enough, had_enough) = bounded(1);
    let server = Fixture::of(patient(Server::new(move |_| {
        if counted.fetch_add(1, Relaxed) == BEFORE {
            enough.send(()).unwrap();
        }
        Response::text(HELLO)
    })));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut connection = Connection::new(server.connect());
            gosched::go(move || {
                let mut answered = 0;
                while let Ok(answer) = connection.exchange(GET, Asked::Body) {
                    assert_eq!(answer.body, HELLO.as_bytes());
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    had_enough.recv().unwrap();
    server.stop();
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(answered, handled.load(Relaxed));
}

/// Connections that the kernel has accepted, with their requests, before the server did.
#[gosched::test(timeout = "120s")]
fn who_waits_to_be_accepted_is_answered() {
    let (began, begun) = bounded(1);
    let (go_on, gone_on) = bounded(100);
    let server = Fixture::of(
        patient(Server::new(move |_| {
            let _ = began.try_send(());
            gone_on.recv().unwrap();
            Response::text(HELLO)
        }))
        .max_connections(1),
    );
    let streams: Vec<_> = (0..5).map(|_| server.connect()).collect();
    // The one that has been accepted comes last: when it is there, so are the others.
    for mut stream in streams.iter().rev() {
        stream.write_all(GET).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    begun.recv().unwrap();
    server.handle.shutdown();
    for _ in &streams {
        go_on.send(()).unwrap();
    }
    for mut stream in streams {
        assert_eq!(statuses(&crate::fixture::read_all(&mut stream)), [200]);
    }
    server.join();
}

#[gosched::test(timeout = "120s")]
fn closing_ends_what_waits() {
    let server = Fixture::of(patient(Server::new(route)));
    let mut stream = server.connect();
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n").unwrap();
    server.handle.shutdown();
    server.handle.close();
    assert_eq!(crate::fixture::read_all(&mut stream), "");
    server.join();
}

#[gosched::test(timeout = "120s")]
fn before_serving() {
    let server = patient(Server::new(route));
    server.handle().shutdown();
    server.handle().shutdown();
    Fixture::of(server).join();
}
