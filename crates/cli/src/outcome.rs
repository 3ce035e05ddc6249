//! What all commands do alike: they print, find their own program, and end.

use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// A sentence for the user about what went wrong.
pub(crate) type Failed = String;

/// The exit code; a failure is told, with the command's name before it.
pub(crate) fn ended(command: &str, result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("gosched {command}: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `text` to standard output, all of it.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_ref()).and_then(|()| out.flush());
    written.map_err(|error| format!("can't print: {error}"))
}

/// `value` as a line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failed> {
    let text = serde_json::to_string(value).map_err(|error| format!("no JSON: {error}"))?;
    Ok(text + "\n")
}

/// This program, for what has to run in a process of its own.
pub(crate) fn own_program() -> Result<PathBuf, Failed> {
    std::env::current_exe().map_err(|error| format!("can't find the own program: {error}"))
}
