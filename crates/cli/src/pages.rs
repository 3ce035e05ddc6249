//! `gosched completions` and `gosched man`: generated from the command line itself.

use crate::args::{Args, CompletionsArgs, ManArgs};
use clap::CommandFactory;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "gosched", &mut text);
    ended("completions", print(&text))
}

pub(crate) fn man(args: &ManArgs) -> ExitCode {
    let result = match &args.out {
        None => page(Args::command()).and_then(|text| print(&text)),
        Some(folder) => write_all(folder),
    };
    ended("man", result)
}

fn ended(command: &str, result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gosched {command}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

/// A page for the command and one for each that is below it.
fn write_all(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut gosched = Args::command().disable_help_subcommand(true);
    gosched.build();
    clap_mangen::generate_to(gosched, folder)
}

fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}
