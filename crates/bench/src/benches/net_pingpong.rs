//! `net_pingpong`: two tasks of one process, and one TCP connection on loopback.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use gosched::net::{TcpListener, TcpStream};
use std::io::{self, Read, Write};
use std::time::Instant;

/// What goes there and back. The peers' number.
const BALL: usize = 64;
/// The echo's buffer. The peers' number.
const MESSAGE: usize = 512;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(100_000)?;
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let address = listener.local_addr().expect("it is bound");
    let echo = spawn(move || {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        echo(stream)
    });
    let player = spawn(move || {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let start = Instant::now();
        let times = play(stream, n)?;
        io::Result::Ok((times, start.elapsed()))
    });
    let (times, took) = join(player).expect("the echo answers");
    join(echo).expect("the player ends the connection");
    Ok(Report::new(args, n).time(took, n).round_trips(times))
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; MESSAGE];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}

/// How long each trip took, in ns.
fn play(mut stream: TcpStream, n: u64) -> io::Result<Vec<u64>> {
    let mut times = Vec::with_capacity(n as usize);
    let (mut ball, mut back) = ([0; BALL], [0; BALL]);
    for i in 0..n {
        let start = Instant::now();
        ball[..8].copy_from_slice(&i.to_ne_bytes());
        stream.write_all(&ball)?;
        stream.read_exact(&mut back)?;
        times.push(start.elapsed().as_nanos() as u64);
        assert_eq!(back, ball, "what comes back is what went out");
    }
    Ok(times)
}
