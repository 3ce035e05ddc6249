//! Time-outs: that they come, and what they do. When they come is not asserted.

use crate::fixture::{Fixture, patient, read_all, route, statuses};
use gosched_http::Server;
use gosched_http::client::{Asked, Connection};
use std::io::{Read, Write};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(50);

#[gosched::test(timeout = "120s")]
fn of_a_head_that_stops() {
    let server = Fixture::of(patient(Server::new(route)).header_timeout(SOON));
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), [408]);
    drop(stream);
    server.stop();
}

/// The slow loris: a head that goes on, and on.
#[gosched::test(timeout = "120s")]
fn of_a_head_that_never_ends() {
    let server = Server::new(route).max_head_bytes(1 << 30);
    let server = Fixture::of(patient(server).header_timeout(SOON));
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\na: ").unwrap();
    let mut sender = stream.try_clone().unwrap();
    let sends = gosched::go(move || {
        let mut sent = 0;
        // Until the server is gone.
        while sender.write_all(b"b").is_ok() {
            sent += 1;
            gosched::time::sleep(Duration::from_millis(1));
        }
        sent
    });
    assert_eq!(statuses(&read_all(&mut stream)), [408]);
    drop(stream);
    let sent: u64 = sends.join().unwrap();
    assert!(sent > 0);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_a_body() {
    let server = Fixture::of(patient(Server::new(route)).body_timeout(SOON));
    let mut stream = server.connect();
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc").unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), [408]);
    drop(stream);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_a_body_that_nobody_reads() {
    let server = Fixture::of(patient(Server::new(route)).body_timeout(SOON));
    let mut stream = server.connect();
    stream.write_all(b"POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc").unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), [200]);
    drop(stream);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_idle_connections() {
    let server = Fixture::of(patient(Server::new(route)).idle_timeout(SOON));
    let mut connection = Connection::new(server.connect());
    let get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(connection.exchange(get, Asked::Body).unwrap().status, 200);
    let mut byte = [0];
    assert_eq!(connection.stream().read(&mut byte).unwrap(), 0);
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn of_connections_that_say_nothing() {
    let server = patient(Server::new(route)).header_timeout(SOON).idle_timeout(SOON);
    let server = Fixture::of(server);
    let mut stream = server.connect();
    assert_eq!(read_all(&mut stream), "");
    server.stop();
}

/// A client that doesn't read what it asked for.
#[gosched::test(timeout = "120s")]
fn of_writes() {
    let server = Fixture::of(patient(Server::new(route)).write_timeout(SOON));
    let mut stream = server.connect();
    // The kernel's buffers take some megabytes at most.
    let many = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n".repeat(64);
    stream.write_all(&many).unwrap();
    server.handle.shutdown();
    let handle = server.handle.clone();
    // It ends although nothing has been read.
    server.join();
    assert_eq!(handle.connections(), 0);
    drop(stream);
}
