//! `gosched completions` and `gosched man`: generated from the command line itself.

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::outcome::{Failed, ended, print};
use clap::CommandFactory;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "gosched", &mut text);
    ended("completions", print(&text))
}

pub(crate) fn man(args: &ManArgs) -> ExitCode {
    let result = match &args.out {
        None => page(Args::command()).and_then(print),
        Some(folder) => write_all(folder),
    };
    ended("man", result)
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failed> {
    let mut text = Vec::new();
    let written = clap_mangen::Man::new(command).render(&mut text);
    written.map_err(|error| error.to_string()).map(|()| text)
}

/// A page for the command and one for each that is below it.
fn write_all(folder: &Path) -> Result<(), Failed> {
    let mut gosched = Args::command().disable_help_subcommand(true);
    gosched.build();
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(gosched, folder));
    written.map_err(|error| error.to_string())
}
