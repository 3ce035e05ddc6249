//! UDP and Unix datagrams.

use super::listeners::fresh_path;
use super::pairs::{random, until_waiting};
use gosched::go;
use gosched::net::{UdpSocket, UnixDatagram};
use std::io::{ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (a, b)
}

/// A datagram socket of either kind, connected.
trait Datagram: Send + Sync + Sized + 'static {
    fn pair() -> (Self, Self);
    fn send(&self, bytes: &[u8]) -> Result<usize>;
    fn recv(&self, buffer: &mut [u8]) -> Result<usize>;
    fn close(&self);
    fn set_read_deadline(&self, deadline: Option<Instant>);
}

macro_rules! datagram {
    ($type:ty, $pair:expr) => {
        impl Datagram for $type {
            fn pair() -> (Self, Self) {
                $pair
            }
            fn send(&self, bytes: &[u8]) -> Result<usize> {
                self.send(bytes)
            }
            fn recv(&self, buffer: &mut [u8]) -> Result<usize> {
                self.recv(buffer)
            }
            fn close(&self) {
                self.close();
            }
            fn set_read_deadline(&self, deadline: Option<Instant>) {
                self.set_read_deadline(deadline);
            }
        }
    };
}

datagram!(UdpSocket, udp_pair());
datagram!(UnixDatagram, UnixDatagram::pair().unwrap());

/// A test for each kind of datagram socket.
macro_rules! for_each_datagram {
    ($($name:ident),* $(,)?) => {
        mod udp {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::UdpSocket>();
                }
            )*
        }
        mod unix {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::UnixDatagram>();
                }
            )*
        }
    };
}

for_each_datagram! {
    closing_ends_receives_that_wait,
    closing_against_receiving,
    deadlines_against_datagrams,
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

/// What a reset is to a stream: in every other round to a receive that waits.
#[gosched::test(timeout = "300s")]
fn a_port_that_is_closed_ends_a_receive_that_waits() {
    for round in 0..60 {
        let (a, b) = udp_pair();
        drop(b);
        let a = Arc::new(a);
        let receiver = go({
            let a = a.clone();
            move || a.recv(&mut [0; 8]).unwrap_err().kind()
        });
        match round % 2 {
            0 => until_waiting(std::slice::from_ref(&receiver)),
            _ => gosched::thread::sleep(Duration::from_micros(random(50))),
        }
        a.send(b"x").unwrap();
        assert_eq!(receiver.join().unwrap(), ErrorKind::ConnectionRefused);
    }
}

/// What a broken pipe is to a stream, to senders that wait for room in the other's queue.
#[gosched::test(timeout = "300s")]
fn a_sender_that_waits_sees_its_receiver_go() {
    for _ in 0..30 {
        let (a, b) = UnixDatagram::pair().unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let sender = go({
            let sent = sent.clone();
            move || loop {
                match a.send(b"x") {
                    Ok(_) => sent.fetch_add(1, SeqCst),
                    Err(error) => break error.kind(),
                };
            }
        });
        until_waiting(std::slice::from_ref(&sender));
        assert!(sent.load(SeqCst) > 0);
        drop(b);
        let kind = sender.join().unwrap();
        assert!(matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset));
    }
}

/// At any moment of a receive.
fn closing_against_receiving<S: Datagram>() {
    let (mut closed, mut received) = (0, 0);
    // Until either has often been first; and the close has come to a receive that waited.
    for round in 0_u64.. {
        if round >= 300 && closed > 60 && received > 20 {
            break;
        }
        let (a, b) = S::pair();
        let a = Arc::new(a);
        let receiver = go({
            let a = a.clone();
            move || a.recv(&mut [0; 8])
        });
        match round % 4 {
            0 => until_waiting(std::slice::from_ref(&receiver)),
            1 => gosched::thread::yield_now(),
            2 => gosched::thread::sleep(Duration::from_micros(random(50))),
            _ => {}
        }
        let sender = go(move || if round % 3 == 0 { b.send(b"xyz").map(drop) } else { Ok(()) });
        if round % 3 == 0 {
            gosched::thread::sleep(Duration::from_micros(random(50)));
        }
        a.close();
        match receiver.join().unwrap() {
            Ok(3) => received += 1,
            // Whoever was just looking sees the end instead.
            Ok(n) => assert_eq!(n, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotConnected);
                closed += 1;
            }
        }
        // It may come too late.
        let _ = sender.join().unwrap();
        assert_eq!(a.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::NotConnected);
    }
}

fn closing_ends_receives_that_wait<S: Datagram>() {
    let (a, _b) = S::pair();
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

/// A datagram that comes just when the time is over is received now or by the next call.
fn deadlines_against_datagrams<S: Datagram>() {
    let (a, mut b) = S::pair();
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
