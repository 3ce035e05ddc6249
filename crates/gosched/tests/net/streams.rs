//! Streams: bytes, ends and errors.

use super::pairs::{Stream, for_each_stream, random, tcp_pair, until_waiting};
use gosched::go;
use gosched::net::UnixStream;
use gosched::process::Command;
use gosched::thread::JoinHandle;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

for_each_stream! {
    both_directions_at_once_through_clones,
    the_end_comes_after_everything_before_it,
    a_half_closed_connection_is_no_busy_loop,
    writing_to_nobody_is_a_broken_pipe,
    a_writer_that_waits_sees_its_reader_go,
    shutting_down_ends_a_read_that_waits,
    closing_ends_reads_and_writes_that_wait,
    closing_against_reading,
    each_byte_goes_to_one_of_many_readers,
    vectored_reads_and_writes,
    nonblocking_says_so,
    plain_threads_wait_too,
}

/// What does not fit into any buffer of the kernel's.
const LARGE: usize = 8 << 20;

fn both_directions_at_once_through_clones<S: Stream>() {
    let (a, b) = S::pair();
    let ends = [a, b].map(|mut end| {
        let mut writer = end.try_clone().unwrap();
        let writes = go(move || {
            for i in 0..LARGE / 4096 {
                writer.write_all(&[i as u8; 4096]).unwrap();
            }
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let reads = go(move || {
            let mut all = Vec::new();
            end.read_to_end(&mut all).unwrap();
            assert_eq!(all.len(), LARGE);
            assert!(all.chunks(4096).enumerate().all(|(i, c)| c.iter().all(|x| *x == i as u8)));
        });
        [writes, reads]
    });
    ends.into_iter().flatten().for_each(|end| end.join().unwrap());
}

fn the_end_comes_after_everything_before_it<S: Stream>() {
    for _ in 0..100 {
        let (mut a, mut b) = S::pair();
        let reader = go(move || {
            let mut text = String::new();
            b.read_to_string(&mut text).unwrap();
            assert_eq!(b.read(&mut [0]).unwrap(), 0, "the end is the end");
            b.write_all(b"answer").unwrap();
            text
        });
        a.write_all(b"question").unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        a.read_to_string(&mut answer).unwrap();
        assert_eq!((reader.join().unwrap().as_str(), answer.as_str()), ("question", "answer"));
    }
}

/// The reader's end is told once. A writer that waits for room then must not be woken by it again
/// and again. In a process of its own, since what is counted are the turns of a whole process.
fn a_half_closed_connection_is_no_busy_loop<S: Stream>() {
    const CHILD: &str = "GOSCHED_TEST_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let kind = if std::any::type_name::<S>().contains("Tcp") { "tcp" } else { "unix" };
        let test = format!("streams::{kind}::a_half_closed_connection_is_no_busy_loop");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&test, "--exact", "--nocapture"]).env(CHILD, &test);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        return;
    }
    let (mut a, mut b) = S::pair();
    a.shutdown(Shutdown::Write).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let writer = go({
        let sent = sent.clone();
        move || {
            assert_eq!(b.read(&mut [0; 16]).unwrap(), 0);
            while sent.load(SeqCst) < LARGE {
                sent.fetch_add(b.write(&[7; 4096]).unwrap(), SeqCst);
            }
        }
    });
    // Until the kernel's buffers are full.
    let mut before = 0;
    loop {
        gosched::thread::sleep(Duration::from_millis(20));
        let now = sent.swap(sent.load(SeqCst), SeqCst);
        if now > 0 && now == before {
            break;
        }
        before = now;
    }
    let was = gosched::runtime::counters();
    for _ in 0..20 {
        gosched::thread::sleep(Duration::from_millis(1));
    }
    let is = gosched::runtime::counters();
    // A loop would turn thousands of times in each of the 20 ms.
    let turns = is.polls + is.poll_sleeps - was.polls - was.poll_sleeps;
    assert!(sent.load(SeqCst) < LARGE, "the writer waits");
    assert!(turns < 20_000, "{turns} turns of the poller while nothing happens");
    let mut all = Vec::new();
    a.read_to_end(&mut all).unwrap();
    writer.join().unwrap();
    assert_eq!(all.len(), sent.load(SeqCst));
}

fn writing_to_nobody_is_a_broken_pipe<S: Stream>() {
    let (mut a, b) = S::pair();
    drop(b);
    // The first one may still be taken, and then answered by a reset.
    let error = loop {
        if let Err(error) = a.write(&[1; 100]) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    // And the process has survived the signal.
    let again = a.write(&[1]).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::BrokenPipe);
}

fn a_writer_that_waits_sees_its_reader_go<S: Stream>() {
    for round in 0..20 {
        let (mut a, b) = S::pair();
        let sent = Arc::new(AtomicUsize::new(0));
        let writer = go({
            let sent = sent.clone();
            move || loop {
                match a.write(&[1; 65536]) {
                    Ok(n) => sent.fetch_add(n, SeqCst),
                    Err(error) => break error.kind(),
                };
            }
        });
        if round % 2 == 0 {
            until_waiting(std::slice::from_ref(&writer));
        } else {
            gosched::thread::sleep(Duration::from_micros(random(500)));
        }
        drop(b);
        let kind = writer.join().unwrap();
        assert!(matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{kind:?}");
    }
}

fn shutting_down_ends_a_read_that_waits<S: Stream>() {
    for _ in 0..100 {
        let (mut a, _b) = S::pair();
        let clone = a.try_clone().unwrap();
        let reader = go(move || a.read(&mut [0; 16]));
        gosched::thread::sleep(Duration::from_micros(random(200)));
        clone.shutdown(Shutdown::Both).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 0);
    }
}

fn closing_ends_reads_and_writes_that_wait<S: Stream>() {
    let (a, _b) = S::pair();
    let a = Arc::new(a);
    let readers = [(); 3].map(|()| {
        let a = a.clone();
        go(move || a.read_shared(&mut [0; 16]))
    });
    let writers = [(); 3].map(|()| {
        let a = a.clone();
        go(move || {
            loop {
                if let Err(error) = a.write_shared(&[1; 65536]) {
                    break error;
                }
            }
        })
    });
    until_waiting(&readers);
    until_waiting(&writers);
    a.close();
    for reader in readers {
        // Whoever was just looking sees the end instead.
        match reader.join().unwrap() {
            Ok(n) => assert_eq!(n, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotConnected),
        }
    }
    for writer in writers {
        let kind = writer.join().unwrap().kind();
        assert!(matches!(kind, ErrorKind::NotConnected | ErrorKind::BrokenPipe), "{kind:?}");
    }
    assert_eq!(a.read_shared(&mut [0]).unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(a.write_shared(&[0]).unwrap_err().kind(), ErrorKind::NotConnected);
}

/// At any moment of a read.
fn closing_against_reading<S: Stream>() {
    let (mut closed, mut ended) = (0, 0);
    // Until the close has often come to a read that waits.
    while closed + ended < 500 || closed <= 100 {
        let (a, _b) = S::pair();
        let a = Arc::new(a);
        let reader = go({
            let a = a.clone();
            move || a.read_shared(&mut [0; 16])
        });
        match random(3) {
            0 => {}
            1 => gosched::thread::yield_now(),
            _ => gosched::thread::sleep(Duration::from_micros(random(50))),
        }
        a.close();
        match reader.join().unwrap() {
            Ok(n) => {
                assert_eq!(n, 0);
                ended += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotConnected);
                closed += 1;
            }
        }
    }
}

fn each_byte_goes_to_one_of_many_readers<S: Stream>() {
    const BYTES_MIN: usize = 2000;
    let (mut a, b) = S::pair();
    let b = Arc::new(b);
    let total = Arc::new(AtomicUsize::new(0));
    // Readers that had a byte.
    let successful = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (b, total, successful) = (b.clone(), total.clone(), successful.clone());
            go(move || {
                let mut count = 0;
                while b.read_shared(&mut [0]).unwrap() == 1 {
                    count += 1;
                    successful.fetch_add(usize::from(count == 1), SeqCst);
                    total.fetch_add(1, SeqCst);
                }
                count
            })
        })
        .collect();
    let mut sent = 0;
    // More than that if one was always there first.
    while sent < BYTES_MIN || successful.load(SeqCst) < 2 {
        // Half of them come when all is read and some wait, the others when somebody still reads.
        while sent % 2 == 0 && total.load(SeqCst) < sent {
            gosched::thread::yield_now();
        }
        a.write_all(&[1]).unwrap();
        sent += 1;
    }
    drop(a);
    let counts: Vec<usize> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    assert_eq!(counts.iter().sum::<usize>(), sent, "{counts:?}");
}

fn vectored_reads_and_writes<S: Stream>() {
    let (mut a, mut b) = S::pair();
    assert_eq!(a.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"cde")]).unwrap(), 5);
    let (mut one, mut two) = ([0; 1], [0; 8]);
    let n = b.read_vectored(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)]).unwrap();
    assert_eq!((n, &one, &two[..4]), (5, b"a", &b"bcde"[..]));
}

fn nonblocking_says_so<S: Stream>() {
    let (mut a, mut b) = S::pair();
    a.set_nonblocking(true).unwrap();
    assert_eq!(a.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    a.set_nonblocking(false).unwrap();
    let writer = go(move || b.write_all(&[1]).unwrap());
    assert_eq!(a.read(&mut [0; 2]).unwrap(), 1);
    writer.join().unwrap();
}

fn plain_threads_wait_too<S: Stream>() {
    let (mut a, mut b) = S::pair();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 4];
        for _ in 0..200 {
            b.read_exact(&mut buffer).unwrap();
            b.write_all(&buffer).unwrap();
        }
        b.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        b.read(&mut buffer).unwrap_err().kind()
    });
    let mut buffer = [0; 4];
    for i in 0..200_u32 {
        a.write_all(&i.to_ne_bytes()).unwrap();
        a.read_exact(&mut buffer).unwrap();
        assert_eq!(buffer, i.to_ne_bytes());
    }
    assert_eq!(thread.join().unwrap(), ErrorKind::TimedOut);
}

/// Closes with a reset instead of an end.
fn reset(socket: &impl AsRawFd) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of_val(&at_once) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_LINGER);
    let at = (&raw const at_once).cast();
    // SAFETY: the kernel reads the option, whose size is stated.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, size) };
    assert_eq!(done, 0);
}

/// What comes next comes to a reader that waits in every other round, at any moment in the others.
fn wait_or_not<T>(round: u32, reader: &JoinHandle<T>) {
    match round % 2 {
        0 => until_waiting(std::slice::from_ref(reader)),
        _ => gosched::thread::sleep(Duration::from_micros(random(50))),
    }
}

#[gosched::test(timeout = "300s")]
fn a_reset_ends_a_tcp_read_that_waits() {
    for round in 0..100 {
        let (mut a, b) = tcp_pair();
        let reader = go(move || a.read(&mut [0; 16]));
        wait_or_not(round, &reader);
        reset(&b);
        drop(b);
        assert_eq!(reader.join().unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

/// A Unix socket is reset when it is closed with something unread.
#[gosched::test(timeout = "300s")]
fn a_reset_ends_a_unix_read_that_waits() {
    for round in 0..100 {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"never read").unwrap();
        let reader = go(move || a.read(&mut [0; 16]));
        wait_or_not(round, &reader);
        drop(b);
        assert_eq!(reader.join().unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[gosched::test(timeout = "300s")]
fn peeking_leaves_what_it_sees() {
    let (mut a, mut b) = tcp_pair();
    let peek = go(move || {
        let mut buffer = [0; 8];
        assert_eq!(b.peek(&mut buffer).unwrap(), 3);
        assert_eq!(b.read(&mut buffer).unwrap(), 3);
        buffer
    });
    gosched::thread::yield_now();
    a.write_all(b"abc").unwrap();
    assert_eq!(&peek.join().unwrap()[..3], b"abc");
}

#[gosched::test(timeout = "300s")]
fn options_are_the_kernels() {
    let (a, b) = tcp_pair();
    a.set_nodelay(true).unwrap();
    assert!(a.nodelay().unwrap());
    a.set_ttl(42).unwrap();
    assert_eq!(a.ttl().unwrap(), 42);
    assert_eq!(a.peer_addr().unwrap(), b.local_addr().unwrap());
    assert!(a.take_error().unwrap().is_none());
}
