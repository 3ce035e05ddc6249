//! One job in blocking calls, as goroutines, threads and pools run it.

use super::case::Case;
use super::service::MESSAGE;
use crate::work::spin;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// What a job has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) asks: usize,
    pub(crate) rounds: u64,
    pub(crate) service: SocketAddr,
}

impl Job {
    /// The `i`-th of a case.
    pub(crate) fn of(case: &Case, i: usize) -> Job {
        Job { asks: case.work.recipe().asks, rounds: case.rounds(i), service: case.service }
    }

    /// Does it; `connect` makes the contender's kind of stream.
    pub(crate) fn perform<S: Read + Write>(
        self,
        connect: impl FnOnce(SocketAddr) -> io::Result<S>,
    ) -> io::Result<()> {
        if self.asks > 0 {
            let mut stream = connect(self.service)?;
            let mut message = [7; MESSAGE];
            for _ in 0..self.asks {
                stream.write_all(&message)?;
                stream.read_exact(&mut message)?;
            }
        }
        spin(self.rounds);
        Ok(())
    }
}
