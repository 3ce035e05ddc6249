//! One case, in the process that was started for it.

use super::case::{Case, Contender, Outcome, raise_descriptor_limit};
use super::job::Job;
use crate::usage;
use gosched::{Config, go};
use rayon::ThreadPoolBuilder;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How a job ended: its number, and when or why not.
pub(super) type End = (usize, io::Result<Instant>);

/// Hands job `i` over, which tells the sender when it is done.
pub(super) type Submit<'a> = dyn FnMut(usize, Sender<End>) -> io::Result<()> + 'a;

/// Runs `case`, on the runtime if it has goroutines, which must not run yet.
///
/// ```
/// use gosched_lab::compare::{Case, Contender, Work, measure};
///
/// let case = Case {
///     contender: Contender::Pool,
///     work: Work::Cpu,
///     jobs: 3,
///     procs: 1,
///     pool: 2,
///     rounds_per_ms: 1_000,
///     interval_ns: 0,
///     service: "127.0.0.1:1".parse().unwrap(), // nobody asks it
/// };
/// let outcome = measure(case).unwrap();
/// assert_eq!(outcome.latency_ns.len(), 3);
/// ```
///
/// # Errors
/// If the contender is not in this build, can't start, or a job fails.
pub fn measure(case: Case) -> Result<Outcome, String> {
    raise_descriptor_limit();
    match case.contender {
        Contender::Goroutines => {
            Config::new().procs(case.procs).start().map_err(|error| error.to_string())?;
            drive(&case, &mut |i, ends| {
                let job = Job::of(&case, i);
                drop(go(move || tell(&ends, i, job.perform(gosched::net::TcpStream::connect))));
                Ok(())
            })
        }
        Contender::Threads => drive(&case, &mut |i, ends| {
            let job = Job::of(&case, i);
            let body = move || tell(&ends, i, job.perform(std::net::TcpStream::connect));
            thread::Builder::new().spawn(body).map(drop)
        }),
        Contender::Pool => {
            let pool = ThreadPoolBuilder::new().num_threads(case.pool).build();
            let pool = pool.map_err(|error| format!("can't start a pool: {error}"))?;
            drive(&case, &mut |i, ends| {
                let job = Job::of(&case, i);
                pool.spawn(move || tell(&ends, i, job.perform(std::net::TcpStream::connect)));
                Ok(())
            })
        }
        #[cfg(feature = "tokio")]
        Contender::EventLoop => super::event_loop::measure(&case),
        #[cfg(not(feature = "tokio"))]
        Contender::EventLoop => Err("this build has no event loop".to_owned()),
    }
}

/// Nobody listens any more when another job has failed.
pub(super) fn tell(ends: &Sender<End>, i: usize, result: io::Result<()>) {
    let _ = ends.send((i, result.map(|()| Instant::now())));
}

/// Hands all jobs over, each when it is due, and waits for them. The same loop for all contenders, on
/// the main thread.
pub(super) fn drive(case: &Case, submit: &mut Submit<'_>) -> Result<Outcome, String> {
    let (sender, ends) = channel();
    let rss_before_bytes = usage::rss();
    let (cpu, start) = (usage::cpu_time(), Instant::now());
    let due = |i: usize| start + Duration::from_nanos(case.interval_ns * i as u64);
    for i in 0..case.jobs {
        if case.interval_ns > 0 {
            thread::sleep(due(i).saturating_duration_since(Instant::now()));
        }
        submit(i, sender.clone()).map_err(|error| format!("can't start job {i}: {error}"))?;
    }
    let threads = usage::threads();
    drop(sender);
    let (mut latency_ns, mut last) = (vec![u64::MAX; case.jobs], start);
    for (i, end) in ends {
        let end = end.map_err(|error| format!("job {i} failed: {error}"))?;
        latency_ns[i] = end.saturating_duration_since(due(i)).as_nanos() as u64;
        last = last.max(end);
    }
    Ok(Outcome {
        case: case.clone(),
        elapsed_ns: (last - start).as_nanos() as u64,
        cpu_ns: (usage::cpu_time() - cpu).as_nanos() as u64,
        peak_rss_bytes: usage::peak_rss(),
        rss_before_bytes,
        threads,
        latency_ns,
    })
}
