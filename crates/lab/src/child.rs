//! The process of a cell, seen from its parent.

use crate::record::{Cell, Measured};
use crate::variant;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs `cell` in the process that `command`, given the cell as JSON, describes.
///
/// # Errors
/// A sentence: it could not be started, failed, took too long, or printed what can't be true.
pub(crate) fn measure(cell: &Cell, command: &dyn Fn(&str) -> Command) -> Result<Measured, String> {
    let json = serde_json::to_string(cell).map_err(|error| error.to_string())?;
    let mut command = command(&json);
    // The cell says how many processors there are.
    command.env_remove("GOMAXPROCS");
    let own = variant::find(&cell.variant).map_or("", |variant| variant.settings);
    if let Some(settings) = settings(own, std::env::var("GOSCHED").ok()) {
        command.env("GOSCHED", settings);
    }
    let measured: Measured = result(command, time_limit(cell))?;
    measured.check()?;
    Ok(measured)
}

/// Runs `command` and reads what it prints as JSON.
///
/// # Errors
/// A sentence: it could not be started, failed, took longer than `limit`, or printed something else.
pub(crate) fn result<T: DeserializeOwned>(
    mut command: Command,
    limit: Duration,
) -> Result<T, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("can't start a process: {error}"))?;
    serde_json::from_slice(&output(child, limit)?)
        .map_err(|error| format!("can't read what the process printed: {error}"))
}

/// What `GOSCHED` becomes: what the caller's environment says, then what the variant says. None if
/// it stays as it is.
fn settings(own: &str, inherited: Option<String>) -> Option<String> {
    if own.is_empty() {
        return None;
    }
    match inherited.filter(|text| !text.is_empty()) {
        Some(inherited) => Some(format!("{inherited},{own}")),
        None => Some(own.to_owned()),
    }
}

/// Ten times what one CPU needs, and a minute: nobody waits for ever for a process that hangs.
fn time_limit(cell: &Cell) -> Duration {
    let work = Duration::from_nanos(cell.work_ns.saturating_mul(cell.goroutines as u64));
    work.saturating_mul(10).saturating_add(Duration::from_secs(60))
}

/// All that `child` prints until it ends.
fn output(mut child: Child, limit: Duration) -> Result<Vec<u8>, String> {
    let mut stdout = child.stdout.take().ok_or("the process has no output")?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody listens any more when it took too long.
        let _ = sender.send(read);
    });
    let read = receiver.recv_timeout(limit);
    if let Err(RecvTimeoutError::Timeout) = read {
        // It may have ended just now, which is as good.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("can't wait for the process: {error}"))?;
    match read {
        Ok(Ok(bytes)) if status.success() => Ok(bytes),
        Ok(Ok(_)) => Err(format!("the process failed: {status}")),
        Ok(Err(error)) => Err(format!("can't read what the process prints: {error}")),
        Err(_) => Err(format!("the process had not ended after {limit:?} and was killed")),
    }
}

#[cfg(test)]
mod tests;
