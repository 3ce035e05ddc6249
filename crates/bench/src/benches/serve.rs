//! `serve_echo` and `http_raw`: servers with a goroutine for each connection, for a load generator
//! in another process.
//!
//! They print `{"port":N}` as their first line, and end after `secs`.

use super::Outcome;
use crate::args::{Args, UsageError};
use crate::http::Connection;
use crate::process::Usage;
use crate::report::Report;
use crate::run::say;
use crate::tasks::spawn;
use gosched::net::{TcpListener, TcpStream};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// What an echo's message has. The peers' number.
const MESSAGE: usize = 512;
/// The backlog of Go's listeners; all peers have it.
const BACKLOG: i32 = 4096;

/// Sends back what comes.
pub(crate) fn echo(args: &Args) -> Outcome {
    serve(args, |mut stream| {
        let mut buffer = vec![0; MESSAGE];
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                n => stream.write_all(&buffer[..n])?,
            }
        }
    })
}

/// Answers HTTP/1.1, parsed by hand.
pub(crate) fn http(args: &Args) -> Outcome {
    serve(args, |mut stream| {
        let mut connection = Connection::new();
        loop {
            match stream.read(connection.space())? {
                0 => return Ok(()),
                n => connection.received(n),
            }
            let stays = connection.answer_all();
            stream.write_all(connection.answers())?;
            connection.clear_answers();
            if !stays {
                return Ok(());
            }
        }
    })
}

/// Listens where `args` say, and tells the load generator.
pub(super) fn listen(args: &Args) -> Result<TcpListener, UsageError> {
    let port: u16 = args.get("port", 0)?;
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let port = listener.local_addr().expect("it is bound").port();
    // SAFETY: no memory is passed.
    let listens = unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
    assert_eq!(listens, 0, "a bound socket listens");
    say(format_args!("{{\"port\":{port}}}"));
    Ok(listener)
}

fn serve(args: &Args, handle: fn(TcpStream) -> io::Result<()>) -> Outcome {
    let life = args.secs("secs", 600.0)?;
    let listener = listen(args)?;
    listener.set_deadline(std::time::Instant::now().checked_add(life));
    let mut served = 0;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                served += 1;
                spawn(move || {
                    let _ = stream.set_nodelay(true);
                    // A client that goes away is no failure of the server's.
                    let _ = handle(stream);
                });
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
            Err(_) => {}
        }
    }
    Ok(report(args, served, life))
}

pub(super) fn report(args: &Args, served: u64, life: Duration) -> Report {
    let counters = gosched::runtime::counters();
    Report::new(args, served)
        .secs(life)
        .set("cpu_ms", Usage::now().cpu.as_secs_f64() * 1e3)
        .set("scheduled", counters.scheduled as i64)
        .set("direct_switches", counters.direct_switches as i64)
        .set("steals", counters.steals as i64)
        .set("polls", counters.polls as i64)
        .set("poll_sleeps", counters.poll_sleeps as i64)
        .set("hand_offs", counters.undeclared_hand_offs as i64)
}
