//! Counts the instructions that an operation of the scheduler takes, and fails when they are more
//! than the table says.
//!
//! Callgrind counts a run of n operations and one of three times as many; what the longer one has
//! more is the operations' alone. A run with one processor, without preemption and without the end
//! of time slices does always the same, on a busy machine too. Valgrind does not know the
//! instructions that load thread-local blocks, so goroutines share their threads' here.
//!
//! Compilers differ, so the table has figures for each one. For a compiler that it does not know the
//! counts are printed and nothing is compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::report::Report;
use crate::run::{Shown, Task};
use crate::steps::{Context, cargo, watched};

/// The operations of `gosched bench operations`, and how many of each the shorter run has.
const OPERATIONS: &[(&str, u64)] = &[
    ("switch", 50_000),
    ("spawn", 10_000),
    ("park", 20_000),
    ("unbuffered", 20_000),
    ("buffered", 30_000),
];

/// An operation may take so much more than the table says: the greater one of a share...
const SHARE: f64 = 0.03;

/// ...and a number of instructions.
const FEW: f64 = 4.0;

/// Where the figures are kept, from the root.
const TABLE: &str = "xtask/instructions.txt";

const HEAD: &str = "\
# Instructions of an operation with shared thread-locals, one processor, and the release profile.
# Written by `cargo xtask instructions --accept`.
";

/// What to do with the counts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// Compare them with the table's.
    Compare,
    /// Enter them into the table.
    Accept,
}

/// The step of CI.
pub(crate) fn compare(context: &Context<'_>) -> Report {
    report(context, Purpose::Compare)
}

/// `cargo xtask instructions --accept`.
pub(crate) fn accept(context: &Context<'_>) -> Report {
    report(context, Purpose::Accept)
}

fn report(context: &Context<'_>, purpose: Purpose) -> Report {
    let root = &context.workspace.root;
    if let Err(reason) = Task::new("valgrind").args(["--version"]).quiet_output(root) {
        return Report::skip(format!("valgrind is not installed: {reason}"));
    }
    let compiler = match compiler(context) {
        Ok(compiler) => compiler,
        Err(reason) => return Report::fail(format!("which compiler it is: {reason}")),
    };
    let build = watched(context, &cargo(&["build", "--release"]), |_| Shown::Yes);
    if !build.failures.is_empty() {
        return build;
    }
    let mut table = match Table::read(root.join(TABLE)) {
        Ok(table) => table,
        Err(reason) => return Report::fail(reason),
    };
    let mut report = Report::default();
    for (name, n) in OPERATIONS {
        match instructions(context, name, *n) {
            Err(failure) => report.absorb(failure),
            Ok(count) if purpose == Purpose::Accept => {
                println!("{name}: {count:.1} instructions, accepted");
                table.set(name, &compiler, count);
                report.absorb(Report::pass());
            }
            Ok(count) => report.absorb(judged(name, &compiler, count, table.get(name, &compiler))),
        }
    }
    if purpose == Purpose::Accept
        && report.failures.is_empty()
        && let Err(error) = table.write()
    {
        report.absorb(Report::fail(format!("{TABLE}: {error}")));
    }
    report
}

/// Instructions for each operation.
fn instructions(context: &Context<'_>, name: &str, n: u64) -> Result<f64, Report> {
    let short = counted(context, name, n)?;
    let long = counted(context, name, 3 * n)?;
    Ok(long.saturating_sub(short) as f64 / (2 * n) as f64)
}

/// Instructions of a whole run.
fn counted(context: &Context<'_>, name: &str, n: u64) -> Result<u64, Report> {
    let program = context.workspace.target.join("release/gosched").display().to_string();
    let task = Task::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &program])
        .args(["bench", "operations", &format!("op={name}"), &format!("n={n}")])
        .args(["procs=1", "tls=shared", "slice_us=1000000000"])
        .variable("GOSCHED", "asyncpreemptoff=1");
    let mut count = None;
    let mut output = String::new();
    let report = watched(context, &task, |line| {
        count = count.or_else(|| collected(line));
        output.push_str(line);
        output.push('\n');
        Shown::No
    });
    match count {
        Some(count) if report.failures.is_empty() => Ok(count),
        _ => {
            println!("{output}");
            let reason = "valgrind did not say how many instructions it had counted";
            Err(if report.failures.is_empty() { Report::fail(reason) } else { report })
        }
    }
}

/// The count in a line such as `==77== Collected : 1234`.
fn collected(line: &str) -> Option<u64> {
    line.split_once(" Collected : ")?.1.trim().parse().ok()
}

/// Compares a count with what the table says.
fn judged(name: &str, compiler: &str, count: f64, accepted: Option<f64>) -> Report {
    let Some(accepted) = accepted else {
        return Report::skip(format!(
            "{name}: {count:.1} instructions; {TABLE} has no figure for {compiler} to compare with"
        ));
    };
    let room = (SHARE * accepted).max(FEW);
    println!("{name}: {count:.1} instructions, accepted are {accepted:.1} and {room:.1} more");
    if count > accepted + room {
        return Report::fail(format!(
            "{name} takes {count:.1} instructions, {accepted:.1} were accepted ({:+.1} %); \
             `valgrind --tool=callgrind` with the command above says where they are, and if they \
             are worth it, `cargo xtask instructions --accept` enters them into {TABLE}",
            100.0 * (count / accepted - 1.0)
        ));
    }
    if count < accepted - room {
        println!("{name}: better; `cargo xtask instructions --accept` keeps it so");
    }
    Report::pass()
}

/// The version and the machine of the compiler, as one word.
fn compiler(context: &Context<'_>) -> Result<String, String> {
    let text = Task::new("rustc").args(["-vV"]).quiet_output(&context.workspace.root)?;
    let field = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key));
        value.map(str::trim).ok_or_else(|| format!("rustc -vV has no line {key}"))
    };
    Ok(format!("{}/{}", field("release:")?, field("host:")?))
}

/// Figures by compiler and operation.
struct Table {
    path: PathBuf,
    figures: BTreeMap<(String, String), f64>,
}

impl Table {
    fn read(path: PathBuf) -> Result<Table, String> {
        let text = fs::read_to_string(&path).map_err(|error| format!("{TABLE}: {error}"))?;
        Ok(Table { path, figures: parsed(&text)? })
    }

    fn get(&self, name: &str, compiler: &str) -> Option<f64> {
        self.figures.get(&(compiler.to_owned(), name.to_owned())).copied()
    }

    fn set(&mut self, name: &str, compiler: &str, count: f64) {
        self.figures.insert((compiler.to_owned(), name.to_owned()), count);
    }

    fn write(&self) -> std::io::Result<()> {
        let mut text = HEAD.to_owned();
        for ((compiler, name), count) in &self.figures {
            let _ = writeln!(text, "{compiler} {name} {count:.1}");
        }
        fs::write(&self.path, text)
    }
}

/// Lines of a compiler, an operation and a figure; `#` begins a remark.
fn parsed(text: &str) -> Result<BTreeMap<(String, String), f64>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let figure = |line: &str| {
        let mut words = line.split_whitespace();
        let (compiler, name, count) = (words.next()?, words.next()?, words.next()?);
        Some(((compiler.to_owned(), name.to_owned()), count.parse().ok()?))
    };
    lines.map(|line| figure(line).ok_or_else(|| format!("{TABLE}: what is {line:?}?"))).collect()
}

#[cfg(test)]
mod tests;
