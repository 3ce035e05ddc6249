//! `/debug/trace?seconds=N`: an execution trace, sent while it is recorded.
//!
//! The trace's collector, a plain thread, writes into a channel, and the connection's goroutine sends
//! what comes out. The channel is short: with a client that reads slowly the collector waits, and the
//! runtime ends a trace that has too much waiting.

use crate::query;
use gosched::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use gosched::trace;
use gosched_http::{Request, Response};
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

/// Pieces of a trace that wait for the client.
const PIECES: usize = 16;

pub(crate) fn answer(req: &Request<'_>) -> Response {
    let time = match query::seconds(req, 1.0) {
        Ok(time) => time,
        Err(refusal) => return refusal,
    };
    if req.method() == "HEAD" {
        return Response::bytes(Vec::new());
    }
    let (sender, receiver) = bounded(PIECES);
    if let Err(error) = trace::start(Pipe(sender)) {
        return Response::new(409).body(format!("no trace can be begun: {error}\n"));
    }
    let recording = Recording { is_on: true };
    Response::stream(move |out| send(recording, &receiver, time, out))
        .header("Content-Type", "application/octet-stream")
        .header("Content-Disposition", "attachment; filename=\"trace\"")
        .header("X-Content-Type-Options", "nosniff")
}

/// Ends the trace when it is dropped, whatever becomes of the request.
struct Recording {
    is_on: bool,
}

impl Recording {
    /// Ends it by another goroutine: the collector's last pieces have to be taken meanwhile.
    fn end_beside(mut self) {
        self.is_on = false;
        gosched::go(trace::stop);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_on {
            // Nobody is there to be told what is wrong.
            let _ = trace::stop();
        }
    }
}

fn send(
    recording: Recording,
    pieces: &Receiver<Vec<u8>>,
    time: Duration,
    out: &mut impl Write,
) -> io::Result<()> {
    let end = Instant::now() + time;
    // The head tells the client that the trace has begun.
    out.flush()?;
    loop {
        match pieces.recv_deadline(end) {
            Ok(piece) => {
                out.write_all(&piece)?;
                out.flush()?;
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("somebody else has ended the trace"));
            }
        }
    }
    recording.end_beside();
    pieces.iter().try_for_each(|piece| out.write_all(&piece))
}

/// Where the collector writes. The trace's end drops it, which ends what comes out.
struct Pipe(Sender<Vec<u8>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
