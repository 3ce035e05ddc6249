//! `gosched lab`.

use crate::args::LabArgs;
use crate::bar::Bar;
use crate::outcome::{Failed, ended, json, own_program, print};
use gosched_lab::{Cell, Document, End, Progress};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

pub(crate) fn run(args: &LabArgs) -> ExitCode {
    let result = match &args.cell {
        Some(cell) => measure(cell.clone()),
        None => experiment(args),
    };
    ended("lab", result)
}

/// The process of one cell.
fn measure(cell: Cell) -> Result<(), Failed> {
    print(&json(&gosched_lab::measure(cell)?)?)
}

fn experiment(args: &LabArgs) -> Result<(), Failed> {
    let cpus = gosched_lab::cpus();
    let mut plan = args.plan(cpus);
    let program = own_program()?;
    eprintln!("about {} s when nothing else runs here", plan.estimate(cpus).as_secs() + 1);
    // Without a folder there are no traces; `write` says why.
    plan.trace &= fs::create_dir_all(&args.out).is_ok();
    let bar = Bar::new();
    let run = gosched_lab::run(plan, &args.out, &|cell| of_cell(&program, cell), |progress| {
        tell(&bar, progress);
    });
    bar.end();
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

fn tell(bar: &Bar, progress: &Progress<'_>) {
    let Progress { ended, cells, cell, end } = progress;
    let Cell { variant, procs, .. } = cell;
    let traced = if cell.trace.is_some() { ", with a trace" } else { "" };
    let what = format!("{variant} on {procs}{traced}");
    match end {
        None => bar.begins(*ended, *cells, &what),
        Some(End { took, failed }) => bar.ended(*ended, *cells, &what, *took, *failed),
    }
}

fn write(document: &Document, folder: &Path) -> Result<(), Failed> {
    gosched_lab::write(document, folder).map_err(|error| {
        let folder = folder.display();
        format!("can't write the report into {folder}: {error}; choose another folder with --out")
    })?;
    eprintln!("\nreport: {}", folder.join("NOTES.md").display());
    Ok(())
}
