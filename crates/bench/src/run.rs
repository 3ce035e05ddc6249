//! The command: picks the bench, starts the runtime, prints the line.

use crate::args::{Args, UsageError};
use crate::benches::{self, Bench, Place};
use crate::report::Report;
use crate::{process, verify};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Runs `gosched-bench WORDS` and tells how the process should end.
///
/// Call it from a plain thread of a program that has not used the runtime yet: the bench starts
/// the runtime as its options say.
///
/// # Panics
///
/// When a bench computed a wrong result.
///
/// # Examples
///
/// ```
/// # use std::process::ExitCode;
/// let code = gosched_bench::run(["list".to_string()]);
/// assert_eq!(code, ExitCode::SUCCESS);
/// ```
pub fn run(words: impl IntoIterator<Item = String>) -> ExitCode {
    match command(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut stderr = io::stderr();
            let _ = writeln!(stderr, "{error}\n{}", UsageError::USAGE);
            ExitCode::from(2)
        }
    }
}

/// The names of all benches.
///
/// ```
/// assert!(gosched_bench::names().any(|name| name == "spawn_join"));
/// ```
pub fn names() -> impl Iterator<Item = &'static str> {
    benches::ALL.iter().map(|bench| bench.name)
}

fn command(words: impl IntoIterator<Item = String>) -> Result<(), UsageError> {
    let mut args = Args::parse(words)?;
    if args.bench == "list" {
        benches::ALL.iter().for_each(|bench| say(bench.name));
        return Ok(());
    }
    let bench = benches::ALL
        .iter()
        .find(|bench| bench.name == args.bench)
        .ok_or_else(|| UsageError::new(format!("gosched has no bench {:?}", args.bench)))?;
    if bench.place == Place::OneProcessor {
        args.procs = 1;
    }
    start(&args)?;
    let report = measure(bench, args)?;
    gosched::trace::stop().expect("what goes nowhere is taken");
    say(verify::finish(report).set("max_rss_kb", process::peak_rss_kb()));
    Ok(())
}

/// Starts the runtime, and what was asked for beside it: the verification, a trace to nowhere.
fn start(args: &Args) -> Result<(), UsageError> {
    use gosched::Tls::{Own, Shared};
    let mut config = gosched::Config::new().procs(args.procs);
    if args.has("slice_us") {
        config = config.slice(Duration::from_micros(args.get("slice_us", 10_000)?));
    }
    if args.has("tls") {
        config = match args.choice("tls", &[("own", Own), ("shared", Shared)])? {
            // SAFETY: the benches' tasks keep no thread-local across a wait.
            Shared => unsafe { config.tls_shared() },
            _ => config,
        };
    }
    config.start().expect("nothing has used the runtime before");
    if args.get("verify", 0)? != 0 {
        verify::start();
    }
    if args.get("trace", 0)? != 0 {
        gosched::trace::start(io::sink()).expect("no trace is on");
    }
    Ok(())
}

fn measure(bench: &'static Bench, args: Args) -> Result<Report, UsageError> {
    match bench.place {
        Place::Thread => (bench.run)(&args),
        Place::Goroutine | Place::OneProcessor => gosched::run(move || {
            verify::host();
            (bench.run)(&args)
        }),
    }
}

/// Prints a line. Nobody may be there to read it, and that is no reason to fail.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}
