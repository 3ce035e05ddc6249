//! Bodies that are waited for, and large ones.

use crate::fixture::{Fixture, HELLO, patient, read_all, statuses};
use gosched::channel::bounded;
use gosched_http::client::{Asked, Connection};
use gosched_http::{Response, Server};
use std::io::{Read, Write};

#[gosched::test(timeout = "120s")]
fn the_client_may_wait_to_be_told_to_continue() {
    const TOLD: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let server = Fixture::start();
    let mut stream = server.connect();
    let head =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head).unwrap();
    let mut told = [0; TOLD.len()];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(told, TOLD);
    stream.write_all(b"abc").unwrap();
    let answer = Connection::new(stream).receive(Asked::Body).unwrap();
    assert_eq!(answer.body, b"abc");
    server.stop();
}

/// Nobody knows whether such a client still sends its body.
#[gosched::test(timeout = "120s")]
fn a_client_that_is_not_told_to_continue_loses_its_connection() {
    let server = Fixture::start();
    let mut stream = server.connect();
    let head =
        b"POST /ignore HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head).unwrap();
    let answer = read_all(&mut stream);
    assert_eq!(statuses(&answer), [200]);
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    drop(stream);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn a_body_is_read_while_it_comes() {
    let (parts, came) = bounded(1);
    let server = Fixture::of(patient(Server::new(move |req| {
        let mut part = [0; 2];
        while let Ok(1..) = req.body().read(&mut part) {
            parts.send(part).unwrap();
        }
        Response::text("done")
    })));
    let mut stream = server.connect();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    for part in [b"ab", b"cd", b"ef"] {
        stream.write_all(b"2\r\n").unwrap();
        stream.write_all(part).unwrap();
        stream.write_all(b"\r\n").unwrap();
        // Before the next one is sent.
        assert_eq!(came.recv().unwrap(), *part);
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(Connection::new(stream).receive(Asked::Body).unwrap().body, b"done");
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn a_body_is_sent_while_it_is_written() {
    let (go_on, gone_on) = bounded::<()>(0);
    let server = Fixture::of(patient(Server::new(move |_| {
        let gone_on = gone_on.clone();
        Response::stream(move |out| {
            out.write_all(b"first")?;
            out.flush()?;
            gone_on.recv().unwrap();
            out.write_all(b"second")
        })
    })));
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"5\r\nfirst\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
    }
    go_on.send(()).unwrap();
    let mut rest = [0; b"6\r\nsecond\r\n0\r\n\r\n".len()];
    stream.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b"6\r\nsecond\r\n0\r\n\r\n");
    drop(stream);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn large_ones() {
    let server = Fixture::start();
    assert_eq!(server.get("/large").body, vec![b'x'; 1 << 20]);
    // As long as the limit allows, through both codings; the connection goes on.
    let body: Vec<u8> = (0..1 << 20).map(|n| (n % 251) as u8).collect();
    let mut connection = Connection::new(server.connect());
    let mut by_length =
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    by_length.extend_from_slice(&body);
    assert!(connection.exchange(&by_length, Asked::Body).unwrap().body == body);
    let mut chunks =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(7_001) {
        write!(chunks, "{:X}\r\n", chunk.len()).unwrap();
        chunks.extend_from_slice(chunk);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    assert!(connection.exchange(&chunks, Asked::Body).unwrap().body == body);
    let hello = connection.exchange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Asked::Body).unwrap();
    assert_eq!(hello.body, HELLO.as_bytes());
    drop(connection);
    server.stop();
}

/// The answer reaches a client that sends on, however much.
#[gosched::test(timeout = "120s")]
fn one_that_is_too_long_is_refused_while_it_is_sent() {
    let server = Fixture::start();
    let mut sent = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n".to_vec();
    sent.resize(sent.len() + (1 << 19), b'x');
    assert_eq!(statuses(&server.talk(&sent)), [413]);
    server.stop();
}
