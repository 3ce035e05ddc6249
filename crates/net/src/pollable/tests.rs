use super::Pollable;
use crate::Direction;
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

fn pair() -> (Pollable<TcpStream>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Pollable::new(ours), theirs)
}

const ROOM: usize = 16;

/// What a read gets, and how often it asked the kernel. With `late` the first time finds nothing,
/// as if everything that is there had come just after it: what comes together has one event. (Only
/// for a read that looks first, otherwise it loses the event.)
fn read(ours: &Pollable<TcpStream>, late: bool) -> (io::Result<Vec<u8>>, u32) {
    let calls = Cell::new(0);
    let mut buffer = [0; ROOM];
    let result = ours.read(true, ROOM, |mut file| {
        calls.set(calls.get() + 1);
        if late && calls.get() == 1 {
            return Err(ErrorKind::WouldBlock.into());
        }
        file.read(&mut buffer)
    });
    (result.map(|n| buffer[..n].to_vec()), calls.get())
}

/// Reads that have nothing to wait for fail in the end, instead of hanging.
fn be_patient(ours: &Pollable<TcpStream>) {
    ours.set_timeout(Direction::Read, Some(Duration::from_secs(60))).unwrap();
}

fn time_out_at_once(ours: &Pollable<TcpStream>) {
    ours.set_timeout(Direction::Read, Some(Duration::from_nanos(1))).unwrap();
}

#[test]
fn a_read_after_a_short_one_waits_without_a_look() {
    let (ours, mut theirs) = pair();
    theirs.write_all(b"short").unwrap();
    be_patient(&ours);
    assert_eq!(read(&ours, true).0.unwrap(), b"short");
    time_out_at_once(&ours);
    let (result, calls) = read(&ours, false);
    assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::TimedOut, 0));
    // That wait has told nothing: the next one looks for itself.
    let (result, calls) = read(&ours, false);
    assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::TimedOut, 1));
    theirs.write_all(b"more").unwrap();
    be_patient(&ours);
    assert_eq!(read(&ours, false).0.unwrap(), b"more");
}

#[test]
fn what_comes_after_a_short_read_is_found_by_the_wait() {
    let (ours, mut theirs) = pair();
    be_patient(&ours);
    for i in 0..200 {
        theirs.write_all(&[i; 3]).unwrap();
        assert_eq!(read(&ours, i == 0).0.unwrap(), [i; 3]);
    }
}

#[test]
fn a_full_read_is_followed_by_a_look() {
    let (ours, mut theirs) = pair();
    theirs.write_all(&[1; ROOM + 1]).unwrap();
    be_patient(&ours);
    assert_eq!(read(&ours, true).0.unwrap(), [1; ROOM]);
    assert_eq!(read(&ours, false).0.unwrap(), [1]);
}

#[test]
fn an_end_that_came_with_the_data_is_seen() {
    let (ours, mut theirs) = pair();
    theirs.write_all(b"last").unwrap();
    theirs.shutdown(Shutdown::Write).unwrap();
    be_patient(&ours);
    assert_eq!(read(&ours, true).0.unwrap(), b"last");
    let (result, calls) = read(&ours, false);
    assert_eq!((result.unwrap(), calls), (vec![], 1));
}

/// A read ends before urgent data, and what is behind it has come already.
#[test]
fn data_behind_urgent_data_is_seen() {
    let (ours, mut theirs) = pair();
    theirs.write_all(b"before").unwrap();
    // SAFETY: one byte is read.
    let sent = unsafe { libc::send(theirs.as_raw_fd(), c"!".as_ptr().cast(), 1, libc::MSG_OOB) };
    assert_eq!(sent, 1);
    theirs.write_all(b"behind").unwrap();
    be_patient(&ours);
    assert_eq!(read(&ours, true).0.unwrap(), b"before");
    assert_eq!(read(&ours, false).0.unwrap(), b"behind");
}

/// A wait of another kind takes the note of what it may leave behind.
#[test]
fn a_peek_leaves_it_to_the_next_read_to_look() {
    let (ours, mut theirs) = pair();
    be_patient(&ours);
    theirs.write_all(b"one").unwrap();
    assert_eq!(read(&ours, true).0.unwrap(), b"one");
    theirs.write_all(b"two").unwrap();
    let calls = Cell::new(0);
    let peeked = ours.call(Direction::Read, |file| {
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            return Err(ErrorKind::WouldBlock.into());
        }
        file.peek(&mut [0; ROOM])
    });
    assert_eq!(peeked.unwrap(), 3);
    assert_eq!(read(&ours, false).0.unwrap(), b"two");
    ours.wait(Direction::Write, None).unwrap();
}

#[test]
fn a_plain_wait_leaves_it_to_the_next_read_to_look() {
    let (ours, mut theirs) = pair();
    be_patient(&ours);
    theirs.write_all(b"one").unwrap();
    assert_eq!(read(&ours, true).0.unwrap(), b"one");
    theirs.write_all(b"two").unwrap();
    ours.wait(Direction::Read, None).unwrap();
    assert_eq!(read(&ours, false).0.unwrap(), b"two");
}
