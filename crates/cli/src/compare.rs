//! `gosched compare`.

use crate::args::CompareArgs;
use crate::bar::Bar;
use crate::outcome::{Failed, ended, json, own_program, print};
use gosched_lab::compare::{Case, Comparison, Step, measure, run as compare};
use std::process::{Command, ExitCode};

pub(crate) fn run(args: &CompareArgs) -> ExitCode {
    let result = match &args.case {
        Some(case) => of_case(case.clone()),
        None => all(args),
    };
    ended("compare", result)
}

/// The process of one case.
fn of_case(case: Case) -> Result<(), Failed> {
    print(&json(&measure(case)?)?)
}

fn all(args: &CompareArgs) -> Result<(), Failed> {
    let program = own_program()?;
    let of_case = |case: &str| {
        let mut command = Command::new(&program);
        command.args(["compare", "--case", case]);
        command
    };
    let bar = Bar::new();
    let comparison = compare(args.options(), &of_case, |step| tell(&bar, step));
    bar.end();
    let comparison =
        comparison.map_err(|error| format!("can't start the service that jobs ask: {error}"))?;
    // Neither keeps the other from what was measured.
    let text = if args.json { json(&comparison)? } else { comparison.terminal() };
    let (printed, written) = (print(&text), write(&comparison, args));
    printed.and(written)?;
    match comparison.failures.len() {
        0 => Ok(()),
        failed => Err(format!("{failed} of the cases have no numbers; see above")),
    }
}

fn tell(bar: &Bar, step: &Step<'_>) {
    let Step { ended, all, case, end } = step;
    let what = format!("{} with {}", case.contender.name(), case.work.name());
    match end {
        None => bar.begins(*ended, *all, &what),
        Some((took, failed)) => bar.ended(*ended, *all, &what, *took, *failed),
    }
}

fn write(comparison: &Comparison, args: &CompareArgs) -> Result<(), Failed> {
    comparison.write(&args.out).map_err(|error| {
        let folder = args.out.display();
        format!("can't write the report into {folder}: {error}; choose another folder with --out")
    })?;
    eprintln!("\nreport: {}", args.out.join("compare.html").display());
    Ok(())
}
