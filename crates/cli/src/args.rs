//! The command line. One struct for each command; those of newer commands in files of their own.

mod bench;
mod demo;
mod pages;

pub(crate) use bench::BenchArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use pages::{CompletionsArgs, ManArgs};

use clap::builder::TypedValueParser;
use clap::{Parser, Subcommand, value_parser};
use gosched_lab::compare::{Case, Options};
use std::path::PathBuf;
use std::time::Duration;

/// Go's scheduler for Rust: experiments and tools.
///
/// GOMAXPROCS says how many goroutines run at once, GOSCHED=key=value,... the rest.
#[derive(Debug, Parser)]
#[command(name = "gosched", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Lab(LabArgs),
    Compare(CompareArgs),
    Demo(DemoArgs),
    Serve(ServeArgs),
    Doctor(DoctorArgs),
    Trace(TraceArgs),
    Top(TopArgs),
    Bench(BenchArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// What this machine offers, what the runtime chooses here, why, and what to change.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch the scheduler of a running process: goroutines, threads, queues, latencies, each second
///
/// The process serves its debug pages (the crate gosched-debug; gosched serve --debug).
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Where the debug pages are
    #[arg(value_name = "ADDR:PORT", default_value = crate::top::ADDRESS)]
    pub(crate) addr: String,

    /// Print one table and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Print JSON, a line each time
    #[arg(long)]
    pub(crate) json: bool,

    /// Milliseconds between two looks, 100 to 60000
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = value_parser!(u64).range(100..=60_000))]
    pub(crate) interval: u64,
}

/// Look into execution traces, as `gosched::trace` and Go's `runtime/trace` (format 1.23) write them
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) act: TraceAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceAct {
    /// Check that what is in it can have happened, by Go's rules of order
    Check(TraceReport),
    /// What processors and goroutines did with their time
    Summary(TraceReport),
    /// Print it as JSON for Chrome's viewer (about:tracing) and Perfetto
    Chrome(TraceFile),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TraceReport {
    #[command(flatten)]
    pub(crate) file: TraceFile,

    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TraceFile {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Schedule forensics: when do many goroutines with the same work run, and why then?
///
/// Runs 1,000 goroutines of 10 ms each that compute (with and without being stopped), compute with
/// yields, sleep, or block their thread, on several numbers of processors, with a probe beside them that measures how late a
/// sleeper wakes. Prints a table and what it says; the report has all of it, with plots.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    /// 100 goroutines unless --goroutines says otherwise: some seconds instead of a minute
    #[arg(long)]
    pub(crate) quick: bool,

    /// Goroutines in each cell, 1 to 1000000 [default: 1000]
    #[arg(long, value_name = "N", value_parser = goroutines())]
    goroutines: Option<usize>,

    /// What each goroutine has to do, in ms, 1 to 10000
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = value_parser!(u64).range(1..=10_000))]
    work: u64,

    /// Numbers of processors (GOMAXPROCS), with commas between them, each 1 to 1024
    /// [default: the distinct values of 1, 2, the CPUs, twice the CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = processors())]
    procs: Vec<usize>,

    /// Folder for NOTES.md, the plots and results.json
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(crate) out: PathBuf,

    /// Leave out the repetitions that execution traces are taken of
    #[arg(long)]
    no_trace: bool,

    /// Print all results as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Measure one cell in this process and print it as JSON
    #[arg(long, value_name = "JSON", hide = true, exclusive = true, value_parser = cell)]
    pub(crate) cell: Option<gosched_lab::Cell>,
}

impl LabArgs {
    /// What the run is to do on a machine with `cpus`.
    pub(crate) fn plan(&self, cpus: usize) -> gosched_lab::Plan {
        let usual = if self.quick { 100 } else { 1_000 };
        let mut procs = self.procs.clone();
        procs.sort_unstable();
        procs.dedup();
        if procs.is_empty() {
            procs = gosched_lab::default_procs(cpus);
        }
        gosched_lab::Plan {
            goroutines: self.goroutines.unwrap_or(usual),
            work: Duration::from_millis(self.work),
            procs,
            trace: !self.no_trace,
        }
    }
}

/// The same jobs on goroutines, on operating system threads, on a thread pool and on an event loop.
///
/// Jobs compute, wait for answers of a service over the loopback interface, or do both; each contender
/// runs them in a process of its own. Prints a table of times, memory and tails and what it says; the
/// report has it with plots. The event loop, tokio, is in builds with `--features tokio` of cargo.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// 200 jobs of each kind unless --jobs says otherwise, and each case once: some seconds
    #[arg(long)]
    quick: bool,

    /// Jobs of each kind, 1 to 100000 [default: 1000]
    #[arg(long, value_name = "N", value_parser = jobs())]
    jobs: Option<usize>,

    /// Threads of the pool, 1 to 1024
    #[arg(long, value_name = "N", default_value = "16", value_parser = processors())]
    pool: usize,

    /// Folder for compare.html and compare.json
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(crate) out: PathBuf,

    /// Print all results as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Run one case in this process and print what it measured as JSON
    #[arg(long, value_name = "JSON", hide = true, exclusive = true, value_parser = case)]
    pub(crate) case: Option<Case>,
}

impl CompareArgs {
    pub(crate) fn options(&self) -> Options {
        let (jobs, repetitions) = if self.quick { (200, 1) } else { (1_000, 3) };
        Options { jobs: self.jobs.unwrap_or(jobs), pool: self.pool, repetitions }
    }
}

/// A web server under which light requests stay fast beside heavy ones.
///
/// Answers / (at once), /heavy (ten million additions), /mixed (one of the two, one of five heavy),
/// /stats (counters of the runtime as JSON) and /healthz. Ctrl-C or SIGTERM ends it when the
/// requests that run are answered; a second one ends it at once. GOMAXPROCS in the environment
/// says how many goroutines run at once.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) addr: String,

    /// Heavy tasks that compute at once, 1 to 1000000 [default: any number]
    #[arg(long, value_name = "N", value_parser = goroutines())]
    pub(crate) cpu_limit: Option<usize>,

    /// Heavy tasks that may wait for --cpu-limit, 0 to 1000000; more get 503 [default: any number]
    #[arg(long, value_name = "N", requires = "cpu_limit", value_parser = waiting())]
    pub(crate) queue: Option<usize>,

    /// With more goroutines than this /healthz answers 503
    #[arg(long, value_name = "N", default_value = "10000", value_parser = waiting())]
    pub(crate) max_goroutines: usize,

    /// Serve the debug pages at ADDR, which nobody but this machine may reach
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = crate::top::ADDRESS)]
    pub(crate) debug: Option<String>,

    /// Serve the debug pages even where others reach them
    #[arg(long, requires = "debug")]
    pub(crate) debug_exposed: bool,

    /// Seconds that requests get to end after Ctrl-C, 0 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = value_parser!(u64).range(..=86_400))]
    grace: u64,
}

impl ServeArgs {
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

fn waiting() -> impl TypedValueParser<Value = usize> {
    value_parser!(u64).range(..=1_000_000).map(|n| n as usize)
}

fn goroutines() -> impl TypedValueParser<Value = usize> {
    value_parser!(u64).range(1..=1_000_000).map(|n| n as usize)
}

fn jobs() -> impl TypedValueParser<Value = usize> {
    value_parser!(u64).range(1..=100_000).map(|n| n as usize)
}

fn processors() -> impl TypedValueParser<Value = usize> {
    value_parser!(u64).range(1..=1_024).map(|n| n as usize)
}

fn cell(json: &str) -> Result<gosched_lab::Cell, String> {
    serde_json::from_str(json).map_err(|error| format!("not a cell: {error}"))
}

fn case(json: &str) -> Result<Case, String> {
    serde_json::from_str(json).map_err(|error| format!("not a case: {error}"))
}

#[cfg(test)]
mod tests;
