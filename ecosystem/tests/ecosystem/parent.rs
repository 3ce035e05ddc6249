//! Runs this program again for each mode, and reports as cargo's own test runner does.
//!
//! A step that takes its process down, or hangs in it, has failed; the steps after it go on in a
//! new process.

use crate::child::MARK;
use crate::mode::{self, Mode};
use crate::step::{self, Step};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Far above what any step takes on a loaded machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(400);

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Ok,
    Skipped(&'static str),
    Failed(String),
}

/// Runs the steps whose names contain one of `filters` in all modes.
pub(crate) fn run(filters: &[String]) -> ExitCode {
    let filters: Vec<&String> = filters.iter().filter(|f| !f.starts_with("--")).collect();
    let is_wanted = |s: &&Step| filters.is_empty() || filters.iter().any(|f| s.name.contains(*f));
    let steps: Vec<&Step> = step::all().filter(is_wanted).collect();
    let mut table = BTreeMap::new();
    let mut failed = false;
    for (column, mode) in Mode::ALL.into_iter().enumerate() {
        let outcomes = run_mode(mode, &steps);
        failed |= outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
        for (row, outcome) in outcomes.into_iter().enumerate() {
            table.insert((row, column), outcome);
        }
    }
    print_table(&steps, &table);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run_mode(mode: Mode, steps: &[&Step]) -> Vec<Outcome> {
    let begin = Instant::now();
    println!("\nmode {}\nrunning {} tests", mode.name(), steps.len());
    let report = |step: &Step, outcome: &Outcome| {
        let what = match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Skipped(why) => format!("ignored\n    SKIPPED: {why}"),
            Outcome::Failed(why) => format!("FAILED\n    {}", why.replace('\n', "\n    ")),
        };
        println!("test {}::{} ... {what}", mode.name(), step.name);
    };
    let mut outcomes = Vec::new();
    while outcomes.len() < steps.len() {
        let rest = &steps[outcomes.len()..];
        let skipped = rest.iter().map_while(|step| step.reason_to_skip(mode));
        let skipped: Vec<_> = skipped.map(Outcome::Skipped).collect();
        for (step, outcome) in rest.iter().zip(skipped) {
            report(step, &outcome);
            outcomes.push(outcome);
        }
        let rest = &steps[outcomes.len()..];
        let until = rest.iter().position(|step| step.reason_to_skip(mode).is_some());
        let batch = &rest[..until.unwrap_or(rest.len())];
        run_process(mode, batch, |i, outcome| {
            report(batch[i], &outcome);
            outcomes.push(outcome);
        });
    }
    print_summary(&outcomes, begin.elapsed());
    outcomes
}

fn print_summary(outcomes: &[Outcome], took: Duration) {
    let count = |f: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| f(outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    println!(
        "\ntest result: {}. {} passed; {failed} failed; {} ignored; 0 measured; 0 filtered out; \
         finished in {:.2}s",
        if failed == 0 { "ok" } else { "FAILED" },
        count(|outcome| *outcome == Outcome::Ok),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        took.as_secs_f64(),
    );
}

fn print_table(steps: &[&Step], table: &BTreeMap<(usize, usize), Outcome>) {
    println!("\n{:58} {}", "step", Mode::ALL.map(Mode::name).join("  "));
    for (row, step) in steps.iter().enumerate() {
        let cell = |(column, mode): (usize, Mode)| {
            let word = match table.get(&(row, column)) {
                Some(Outcome::Ok) => "ok",
                Some(Outcome::Skipped(_)) => "skipped",
                Some(Outcome::Failed(_)) | None => "FAILED",
            };
            format!("{word:width$}", width = mode.name().len())
        };
        let cells: Vec<_> = Mode::ALL.into_iter().enumerate().map(cell).collect();
        println!("{:58} {}", step.name, cells.join("  "));
    }
}

/// Runs `steps` in one process until they are through or it is gone, and tells `done` of each.
fn run_process(mode: Mode, steps: &[&Step], mut done: impl FnMut(usize, Outcome)) {
    if steps.is_empty() {
        return;
    }
    let mut process = start(mode, steps);
    let lines = read_lines(process.stdout.take());
    let errors = read_all(process.stderr.take());
    let mut i = 0;
    let end = loop {
        match lines.recv_timeout(STEP_TIMEOUT) {
            Ok(line) => {
                let Some(word) = line.strip_prefix(MARK) else {
                    println!("{line}");
                    continue;
                };
                let outcome = match word {
                    "begin" => continue,
                    "ok" => Outcome::Ok,
                    why => Outcome::Failed(why.to_owned()),
                };
                done(i, outcome);
                i += 1;
            }
            Err(RecvTimeoutError::Disconnected) => break "ended before the step did",
            Err(RecvTimeoutError::Timeout) => {
                process.kill().expect("the child is ours");
                break "hung";
            }
        }
    };
    let status = process.wait().expect("the child is ours");
    if i < steps.len() {
        let errors = errors.join().expect("only reads");
        let tail = errors.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
        done(i, Outcome::Failed(format!("the process {end} ({status})\n{}", &errors[tail..])));
    }
}

fn start(mode: Mode, steps: &[&Step]) -> Child {
    let program = std::env::current_exe().expect("a program knows its path");
    Command::new(program)
        .args(steps.iter().map(|step| step.name))
        .env(mode::VARIABLE, mode.name())
        .env("RUST_BACKTRACE", "full")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a program can start itself")
}

fn read_lines(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let pipe = BufReader::new(pipe.expect("the pipe was asked for"));
    std::thread::spawn(move || {
        for line in pipe.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    let mut pipe = pipe.expect("the pipe was asked for");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
