//! `println`: many tasks print lines to one pipe, whose reader checks them; and as many threads do.
//!
//! `slice_us=100` (ours only) has the tasks stopped more often, while they hold the lock too.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A lock of std's around a buffered writer, as standard output is.
type Out = Arc<Mutex<std::io::LineWriter<PipeWriter>>>;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let lines = args.get("lines", 100)?;
    let by_threads = measure(n, lines, |work| {
        let threads: Vec<_> = work.into_iter().map(std::thread::spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it only prints"));
    });
    let before = gosched::runtime::preemptions().in_place;
    let by_tasks = measure(n, lines, |work| {
        join_all(work.into_iter().map(spawn).collect::<Vec<_>>());
    });
    let preemptions = gosched::runtime::preemptions().in_place - before;
    Ok(Report::new(args, n)
        .time(by_tasks, n * lines)
        .set("threads_secs", by_threads.as_secs_f64())
        .set("to_threads", by_tasks.as_secs_f64() / by_threads.as_secs_f64())
        .set("preemptions", preemptions))
}

/// How long `n` printers take to print `lines` each, all of which must come, whole and in order.
fn measure(n: u64, lines: u64, start: impl FnOnce(Vec<Box<dyn FnOnce() + Send>>)) -> Duration {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let checker = std::thread::spawn(move || check(reader));
    let out: Out = Arc::new(Mutex::new(std::io::LineWriter::new(writer)));
    let begun = Instant::now();
    let printers = (0..n).map(|i| {
        let out = out.clone();
        Box::new(move || print(&out, i, lines)) as Box<dyn FnOnce() + Send>
    });
    start(printers.collect());
    let took = begun.elapsed();
    drop(out);
    assert_eq!(checker.join().expect("every line is whole"), n * lines, "a line is lost");
    took
}

fn print(out: &Out, i: u64, lines: u64) {
    for line in 0..lines {
        let mut out = out.lock().expect("nobody panics with it");
        writeln!(out, "{i} {line} {}", i ^ line).expect("the reader reads");
    }
}

/// How many lines came.
fn check(pipe: PipeReader) -> u64 {
    let (mut next, mut count) = (HashMap::new(), 0);
    for line in BufReader::new(pipe).lines() {
        let line = line.expect("text");
        let numbers: Vec<u64> = line.split(' ').flat_map(str::parse).collect();
        let [i, number, sum] = numbers[..] else { panic!("torn: {line:?}") };
        assert_eq!(i ^ number, sum, "torn: {line:?}");
        let expected = next.entry(i).or_insert(0);
        assert_eq!(number, *expected, "lost: {line:?}");
        *expected += 1;
        count += 1;
    }
    count
}
