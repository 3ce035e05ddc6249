//! What is compared: contenders, kinds of work, and what one process measured.

use rustix::process::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// The size of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Jobs of each kind.
    pub jobs: usize,
    /// Threads of the pool.
    pub pool: usize,
    /// How often each case runs; the run with the median time counts.
    pub repetitions: usize,
}

/// Who runs the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contender {
    /// A goroutine for each job.
    Goroutines,
    /// An operating system thread for each.
    Threads,
    /// A pool of threads (rayon's), which run one job after another.
    Pool,
    /// A task of an event loop for each (tokio's, with as many threads as there are CPUs); in builds
    /// with the feature `tokio` only.
    EventLoop,
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Computes for 1 ms. All come at once.
    Cpu,
    /// Connects to a service over the loopback interface, and asks it four times, which answers after
    /// 5 ms. All come at once.
    Io,
    /// Asks once and computes: nine of ten jobs for 0.05 ms, the tenth for 20 ms. They come one after
    /// another, so that half of the CPUs' time is used.
    Mixed,
}

/// What a job of some work does, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) asks: usize,
    pub(crate) light: Duration,
    pub(crate) heavy: Duration,
}

/// One of so many jobs is heavy.
pub(crate) const HEAVY_EVERY: usize = 10;

/// Which part of the CPUs' time mixed jobs use.
const LOAD: f64 = 0.5;

impl Contender {
    /// All there are, in the order of the tables.
    pub const ALL: [Contender; 4] =
        [Contender::Goroutines, Contender::Threads, Contender::Pool, Contender::EventLoop];

    /// As the tables write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Contender::Goroutines => "goroutines",
            Contender::Threads => "threads",
            Contender::Pool => "thread pool",
            Contender::EventLoop => "event loop",
        }
    }

    /// Whether this build has it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self != Contender::EventLoop || cfg!(feature = "tokio")
    }
}

impl Work {
    /// All there are, in the order of the tables.
    pub const ALL: [Work; 3] = [Work::Cpu, Work::Io, Work::Mixed];

    /// As the tables write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Work::Cpu => "cpu",
            Work::Io => "io",
            Work::Mixed => "mixed",
        }
    }

    /// One sentence about it.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Work::Cpu => "Each job computes for 1 ms; all come at once",
            Work::Io => {
                "Each job connects to a service and asks it four times, which answers after 5 ms; \
                 all come at once"
            }
            Work::Mixed => {
                "Each job asks the service once and computes, nine of ten for 0.05 ms and the tenth \
                 for 20 ms; they come one after another, so that half of the CPUs' time is used; \
                 latencies are those of the light ones"
            }
        }
    }

    pub(crate) fn recipe(self) -> Recipe {
        let us = Duration::from_micros;
        match self {
            Work::Cpu => Recipe { asks: 0, light: us(1_000), heavy: us(1_000) },
            Work::Io => Recipe { asks: 4, light: us(0), heavy: us(0) },
            Work::Mixed => Recipe { asks: 1, light: us(50), heavy: us(20_000) },
        }
    }

    /// Whether job `i` is one of those that compute for long.
    pub(crate) fn is_heavy(self, i: usize) -> bool {
        self == Work::Mixed && i % HEAVY_EVERY == HEAVY_EVERY - 1
    }

    /// From one job to the next, on so many CPUs.
    pub(crate) fn interval(self, cpus: usize) -> Duration {
        match self {
            Work::Cpu | Work::Io => Duration::ZERO,
            Work::Mixed => {
                let Recipe { light, heavy, .. } = self.recipe();
                let all = light * (HEAVY_EVERY as u32 - 1) + heavy;
                (all / HEAVY_EVERY as u32).div_f64(LOAD * cpus as f64)
            }
        }
    }
}

/// One contender with one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Who.
    pub contender: Contender,
    /// What.
    pub work: Work,
    /// How many jobs.
    pub jobs: usize,
    /// GOMAXPROCS, or threads of the event loop.
    pub procs: usize,
    /// Threads of the pool.
    pub pool: usize,
    /// Rounds of computing that take a millisecond.
    pub rounds_per_ms: u64,
    /// From one job to the next; 0 if all come at once.
    pub interval_ns: u64,
    /// Where the service listens.
    pub service: SocketAddr,
}

impl Case {
    /// The rounds of job `i`.
    pub(crate) fn rounds(&self, i: usize) -> u64 {
        let Recipe { light, heavy, .. } = self.work.recipe();
        let time = if self.work.is_heavy(i) { heavy } else { light };
        (self.rounds_per_ms as f64 * time.as_secs_f64() * 1e3) as u64
    }

    /// Nobody waits for ever for a process that hangs: a minute, and 100 ms for each job.
    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_secs(60) + Duration::from_millis(100) * self.jobs as u32
    }
}

impl Options {
    /// Every contender of this build with every kind of work.
    pub(crate) fn cases(&self, cpus: usize, rounds_per_ms: u64, service: SocketAddr) -> Vec<Case> {
        let contenders = || Contender::ALL.into_iter().filter(|contender| contender.is_built_in());
        let case = |work: Work, contender| Case {
            contender,
            work,
            jobs: self.jobs,
            procs: cpus,
            pool: self.pool,
            rounds_per_ms,
            interval_ns: work.interval(cpus).as_nanos() as u64,
            service,
        };
        Work::ALL
            .into_iter()
            .flat_map(|work| contenders().map(move |who| case(work, who)))
            .collect()
    }
}

/// What one process measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was asked for.
    pub case: Case,
    /// From the start until the last job was done.
    pub elapsed_ns: u64,
    /// CPU time that the process used meanwhile; the kernel counts in 10 ms.
    pub cpu_ns: u64,
    /// The most memory that the process had resident, and what it had before the first job; 0 if the
    /// kernel doesn't say.
    pub peak_rss_bytes: u64,
    /// See there.
    pub rss_before_bytes: u64,
    /// Threads of the process when the last job had been handed over.
    pub threads: u64,
    /// From when each job came until it was done, job by job.
    pub latency_ns: Vec<u64>,
}

impl Outcome {
    /// Whether the numbers can be true.
    ///
    /// # Errors
    /// A sentence about what can't.
    pub fn check(&self) -> Result<(), String> {
        let (done, jobs) = (self.latency_ns.len(), self.case.jobs);
        if done != jobs {
            return Err(format!("{done} of {jobs} jobs were done"));
        }
        if self.latency_ns.iter().any(|latency| *latency > self.elapsed_ns) {
            return Err("a job took longer than all of them".to_owned());
        }
        Ok(())
    }
}

/// Lets this process have as many open files as it may. Each waiting job has one.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it can't, connections fail and say why.
    let _ = setrlimit(Resource::Nofile, limit);
}
