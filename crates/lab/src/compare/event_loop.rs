//! The jobs as tasks of tokio's event loop, with as many threads as there are processors.

use super::case::{Case, Outcome};
use super::contenders::{drive, tell};
use super::job::Job;
use super::service::MESSAGE;
use crate::work::spin;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

pub(super) fn measure(case: &Case) -> Result<Outcome, String> {
    let runtime = Builder::new_multi_thread().worker_threads(case.procs).enable_all().build();
    let runtime = runtime.map_err(|error| format!("can't start the event loop: {error}"))?;
    drive(case, &mut |i, ends| {
        let job = Job::of(case, i);
        drop(runtime.spawn(async move { tell(&ends, i, perform(job).await) }));
        Ok(())
    })
}

/// What [`Job::perform`] does. It computes where it is, as a goroutine does: to hand a computation to
/// other threads is to know beforehand that it is long.
async fn perform(job: Job) -> io::Result<()> {
    if job.asks > 0 {
        let mut stream = TcpStream::connect(job.service).await?;
        let mut message = [7; MESSAGE];
        for _ in 0..job.asks {
            stream.write_all(&message).await?;
            stream.read_exact(&mut message).await?;
        }
    }
    spin(job.rounds);
    Ok(())
}
