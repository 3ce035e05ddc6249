//! UDP and Unix datagrams.

use super::listeners::fresh_path;
use super::pairs::{random, until_waiting};
use gosched::go;
use gosched::net::{UdpSocket, UnixDatagram};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (a, b)
}

#[gosched::test(timeout = "300s")]
fn datagrams_keep_their_borders() {
    let (a, b) = udp_pair();
    let receiver = go(move || {
        let mut buffer = [0; 16];
        let sizes = [(); 3].map(|()| b.recv(&mut buffer).unwrap());
        assert_eq!(b.peek(&mut buffer).unwrap(), 4);
        let (size, from) = b.peek_from(&mut buffer).unwrap();
        assert_eq!((size, from), (4, b.peer_addr().unwrap()));
        sizes
    });
    for size in 1..=4 {
        gosched::thread::yield_now();
        assert_eq!(a.send(&[7; 4][..size]).unwrap(), size);
    }
    assert_eq!(receiver.join().unwrap(), [1, 2, 3]);
}

/// Registered while it has no partner, connected later.
#[gosched::test(timeout = "300s")]
fn a_udp_socket_that_waits_before_it_connects() {
    let a = UdpSocket::bind("127.0.0.1:0").unwrap();
    let b = UdpSocket::bind("127.0.0.1:0").unwrap();
    a.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(a.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::TimedOut);
    a.set_read_timeout(None).unwrap();
    a.connect(b.local_addr().unwrap()).unwrap();
    let echo = go(move || {
        let (n, from) = b.recv_from(&mut [0; 8]).unwrap();
        b.send_to(&[1; 8][..n], from).unwrap();
    });
    a.send(&[1; 3]).unwrap();
    assert_eq!(a.recv(&mut [0; 8]).unwrap(), 3);
    echo.join().unwrap();
}

/// What a reset is to a stream.
#[gosched::test(timeout = "300s")]
fn a_port_that_is_closed_ends_a_receive_that_waits() {
    let (a, b) = udp_pair();
    drop(b);
    let a = Arc::new(a);
    let receiver = go({
        let a = a.clone();
        move || a.recv(&mut [0; 8]).unwrap_err().kind()
    });
    gosched::thread::sleep(Duration::from_micros(random(200)));
    a.send(b"x").unwrap();
    assert_eq!(receiver.join().unwrap(), ErrorKind::ConnectionRefused);
}

#[gosched::test(timeout = "300s")]
fn closing_ends_udp_receives_that_wait() {
    let (a, _b) = udp_pair();
    let a = Arc::new(a);
    let receivers = [(); 3].map(|()| {
        let a = a.clone();
        go(move || a.recv(&mut [0; 8]))
    });
    until_waiting(&receivers);
    a.close();
    for receiver in receivers {
        match receiver.join().unwrap() {
            Ok(n) => assert_eq!(n, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotConnected),
        }
    }
}

#[gosched::test(timeout = "300s")]
fn udp_deadlines_against_datagrams() {
    let (a, mut b) = udp_pair();
    const ROUNDS_MIN: u64 = 1000;
    const EACH_MIN: u64 = 25;
    let (mut in_time, mut late) = (0, 0);
    let is_over =
        |in_time: u64, late: u64| in_time + late >= ROUNDS_MIN && in_time.min(late) > EACH_MIN;
    for round in 0_u64.. {
        if is_over(in_time, late) {
            break;
        }
        let sender = go(move || {
            gosched::thread::sleep(Duration::from_micros(random(100)));
            b.send(&round.to_ne_bytes()).unwrap();
            b
        });
        a.set_read_deadline(Some(Instant::now() + Duration::from_micros(random(200))));
        let mut number = [0; 8];
        match a.recv(&mut number) {
            Ok(n) => {
                assert_eq!(n, 8);
                in_time += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                late += 1;
                a.set_read_deadline(None);
                assert_eq!(a.recv(&mut number).unwrap(), 8);
            }
        }
        assert_eq!(u64::from_ne_bytes(number), round);
        b = sender.join().unwrap();
    }
}

/// The kernel tells of room in another socket's queue only who is connected with it.
#[gosched::test(timeout = "300s")]
fn a_sender_that_is_not_connected_waits_for_room() {
    const MESSAGES: u32 = 5000;
    let path = fresh_path();
    let receiver = UnixDatagram::bind(&path).unwrap();
    let sender = go(move || {
        let socket = UnixDatagram::unbound().unwrap();
        for number in 0..MESSAGES {
            socket.send_to(&number.to_ne_bytes(), &path).unwrap();
        }
    });
    until_waiting(std::slice::from_ref(&sender));
    let mut number = [0; 4];
    for expected in 0..MESSAGES {
        receiver.recv(&mut number).unwrap();
        assert_eq!(u32::from_ne_bytes(number), expected);
    }
    sender.join().unwrap();
}

#[gosched::test(timeout = "300s")]
fn a_sender_that_is_not_connected_times_out() {
    let path = fresh_path();
    let _receiver = UnixDatagram::bind(&path).unwrap();
    let socket = UnixDatagram::unbound().unwrap();
    socket.set_write_timeout(Some(Duration::from_millis(2))).unwrap();
    let error = loop {
        if let Err(error) = socket.send_to(b"x", &path) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[gosched::test(timeout = "300s")]
fn unix_datagrams_know_where_they_come_from() {
    let (here, there) = (fresh_path(), fresh_path());
    let a = UnixDatagram::bind(&here).unwrap();
    let b = UnixDatagram::bind(&there).unwrap();
    let receiver = go(move || {
        let mut buffer = [0; 8];
        let (n, from) = b.recv_from(&mut buffer).unwrap();
        b.send_to_addr(&buffer[..n], &from).unwrap();
    });
    a.send_to(b"abc", &there).unwrap();
    let mut buffer = [0; 8];
    let (n, from) = a.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..n], from.as_pathname()), (&b"abc"[..], Some(there.as_path())));
    receiver.join().unwrap();
}
