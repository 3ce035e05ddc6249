//! `gosched lab`.

use crate::args::LabArgs;
use gosched_lab::{Cell, Document, Progress};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

/// A sentence for the user about what went wrong.
type Failed = String;

pub(crate) fn run(args: &LabArgs) -> ExitCode {
    let result = match &args.cell {
        Some(cell) => measure(cell.clone()),
        None => experiment(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("gosched lab: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The process of one cell.
fn measure(cell: Cell) -> Result<(), Failed> {
    print(&json(&gosched_lab::measure(cell)?)?)
}

fn experiment(args: &LabArgs) -> Result<(), Failed> {
    let cpus = gosched_lab::cpus();
    let plan = args.plan(cpus);
    let program =
        std::env::current_exe().map_err(|error| format!("can't find the own program: {error}"))?;
    eprintln!("about {} s when nothing else runs here", plan.estimate(cpus).as_secs() + 1);
    let run = gosched_lab::run(plan, &|cell| of_cell(&program, cell), tell);
    let document = Document::of(run);
    // Neither keeps the other from what was measured.
    let text = if args.json { json(&document)? } else { gosched_lab::terminal(&document) };
    let (printed, written) = (print(&text), write(&document, &args.out));
    printed.and(written)?;
    match document.failures.len() {
        0 => Ok(()),
        failed => Err(format!("{failed} of the cells have no numbers; see above")),
    }
}

fn of_cell(program: &Path, cell: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["lab", "--cell", cell]);
    command
}

fn tell(progress: &Progress<'_>) {
    let Progress { ended, cells, cell, took, failed } = progress;
    let Cell { variant, procs, .. } = cell;
    let end = failed
        .map_or_else(|| format!("{:.1} s", took.as_secs_f64()), |why| format!("failed: {why}"));
    eprintln!("{ended:>2} of {cells}  {variant:<9} GOMAXPROCS={procs:<4} {end}");
}

fn write(document: &Document, folder: &Path) -> Result<(), Failed> {
    gosched_lab::write(document, folder).map_err(|error| {
        let folder = folder.display();
        format!("can't write the report into {folder}: {error}; choose another folder with --out")
    })?;
    eprintln!("\nreport: {}", folder.join("NOTES.md").display());
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String, Failed> {
    let text = serde_json::to_string(value).map_err(|error| format!("no JSON: {error}"))?;
    Ok(text + "\n")
}

fn print(text: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("can't print: {error}"))
}
