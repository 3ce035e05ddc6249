//! Sockets whose calls end with a context, alone and against what they wait for.

use super::pairs::{Stream, tcp_pair, until_waiting};
use gosched::context::{self, ContextError};
use gosched::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream, is_cancelled};
use gosched::time::{Cancelled, sleep_ctx};
use gosched::{go, thread};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

#[gosched::test(timeout = "300s")]
fn a_cancelled_context_ends_a_call_before_it_begins() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (a, mut b) = tcp_pair();
    b.write_all(b"xy").unwrap();
    let mut byte = [0];
    // What is there is read, whoever has it ready.
    while a.with_context(&ctx).read(&mut byte).unwrap() != 1 {}
    cancel.cancel();
    assert!(is_cancelled(&a.with_context(&ctx).read(&mut byte).unwrap_err()));
    assert!(is_cancelled(&a.with_context(&ctx).write(b"z").unwrap_err()));
    // It is the call that ends, not the socket.
    (&a).read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"y");
    let never = context::background();
    a.with_context(&never).write_all(b"z").unwrap();
    b.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"z");
}

/// Those that wait for their turn, too, and whoever waits without a context stays.
#[gosched::test(timeout = "300s")]
fn a_cancellation_ends_all_calls_that_wait() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (a, mut b) = UnixStream::pair().unwrap();
    let a = Arc::new(a);
    let with = [(); 4].map(|()| {
        let (a, ctx) = (a.clone(), ctx.clone());
        go(move || a.with_context(&ctx).read(&mut [0; 8]).unwrap_err())
    });
    until_waiting(&with);
    let without = [(); 2].map(|()| {
        let a = a.clone();
        go(move || a.read_shared(&mut [0; 1]).unwrap())
    });
    until_waiting(&without);
    cancel.cancel();
    for one in with {
        assert!(is_cancelled(&one.join().unwrap()));
    }
    b.write_all(b"xy").unwrap();
    assert_eq!(without.map(|one| one.join().unwrap()), [1, 1]);
}

#[gosched::test(timeout = "300s")]
fn writers_listeners_and_datagrams_give_up_as_well() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (full, _other) = UnixStream::pair().unwrap();
    let path = std::env::temp_dir().join(format!("gosched-ctx-{}", std::process::id()));
    let of_path = UnixListener::bind(&path).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let waits = {
        let all = [ctx.clone(), ctx.clone(), ctx.clone(), ctx];
        let [c0, c1, c2, c3] = all;
        [
            go(move || {
                loop {
                    if let Err(error) = full.with_context(&c0).write(&[0; 65536]) {
                        return error;
                    }
                }
            }),
            go(move || listener.with_context(&c1).accept().unwrap_err()),
            go(move || datagrams.with_context(&c2).recv_from(&mut [0; 8]).unwrap_err()),
            go(move || of_path.with_context(&c3).accept().unwrap_err()),
        ]
    };
    until_waiting(&waits);
    cancel.cancel();
    for one in waits {
        assert!(is_cancelled(&one.join().unwrap()));
    }
    std::fs::remove_file(path).unwrap();
}

/// A deadline of the socket and one of the context: the earlier one counts.
#[gosched::test(timeout = "300s")]
fn deadlines_of_both_kinds_count() {
    let (a, _b) = UnixStream::pair().unwrap();
    let (ctx, _cancel) = context::with_timeout(&context::background(), Duration::from_millis(2));
    a.set_read_timeout(Some(LONG)).unwrap();
    assert!(is_cancelled(&a.with_context(&ctx).read(&mut [0; 8]).unwrap_err()));
    assert_eq!(ctx.err(), Some(ContextError::DeadlineExceeded));
    let (ctx, _cancel) = context::with_timeout(&context::background(), LONG);
    a.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let error = a.with_context(&ctx).read(&mut [0; 8]).unwrap_err();
    assert_eq!((error.kind(), is_cancelled(&error)), (ErrorKind::TimedOut, false));
}

/// Bytes that arrive at the moment of the cancellation are read or stay.
#[gosched::test(timeout = "300s")]
fn a_cancellation_against_data_loses_nothing() {
    let (mut a, b): (TcpStream, TcpStream) = tcp_pair();
    let mut seen = [0_u32; 2];
    let mut round = 0_u32;
    while round < 500 || seen.contains(&0) {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let reader = go({
            let b = b.try_clone().unwrap();
            move || b.with_context(&ctx).read(&mut [0; 1])
        });
        if round.is_multiple_of(2) {
            until_waiting(std::slice::from_ref(&reader));
        }
        let canceller = go(move || cancel.cancel());
        if !round.is_multiple_of(3) {
            thread::yield_now();
        }
        a.write_all(b"x").unwrap();
        canceller.join().unwrap();
        match reader.join().unwrap() {
            Ok(n) => {
                assert_eq!(n, 1);
                seen[0] += 1;
            }
            Err(error) => {
                assert!(is_cancelled(&error));
                assert_eq!((&b).read(&mut [0; 1]).unwrap(), 1);
                seen[1] += 1;
            }
        }
        round += 1;
    }
}

#[gosched::test(timeout = "300s")]
fn a_sleep_ends_with_its_context() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let begin = Instant::now();
    assert_eq!(sleep_ctx(&ctx, Duration::from_millis(2)), Ok(()));
    assert!(begin.elapsed() >= Duration::from_millis(2));
    assert_eq!(sleep_ctx(&context::background(), Duration::from_millis(1)), Ok(()));
    assert_eq!(sleep_ctx(&ctx, Duration::ZERO), Ok(()));
    let in_goroutine = go({
        let ctx = ctx.clone();
        move || sleep_ctx(&ctx, LONG)
    });
    let without_end = go({
        let ctx = ctx.clone();
        move || sleep_ctx(&ctx, Duration::MAX)
    });
    static BEGINS: AtomicBool = AtomicBool::new(false);
    let in_thread = std::thread::spawn({
        let ctx = ctx.clone();
        move || {
            BEGINS.store(true, SeqCst);
            sleep_ctx(&ctx, LONG)
        }
    });
    while !BEGINS.load(SeqCst) {
        thread::yield_now();
    }
    cancel.cancel();
    assert_eq!(in_goroutine.join().unwrap(), Err(Cancelled));
    assert_eq!(without_end.join().unwrap(), Err(Cancelled));
    assert_eq!(in_thread.join().unwrap(), Err(Cancelled));
    assert_eq!(sleep_ctx(&ctx, LONG), Err(Cancelled));
}
