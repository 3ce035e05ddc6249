//! Runs a test's body in a child process with settings of its own.

use std::io::Write;
use std::process::{Command, Output};

const CHILD: &str = "GOSCHED_TEST_CHILD";
/// Longer than any body takes on a machine that is slow, busy and stalled; a hang ends the child.
const SECONDS: &str = "300";

/// Runs `body` in a child process with `GOSCHED=settings`. `test` is the path of the calling test.
#[track_caller]
pub(crate) fn in_child(settings: &str, test: &str, body: fn()) {
    if is_child_of(test) {
        return body();
    }
    let ended = output_of(settings, test);
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    assert!(ended.status.success(), "{test}: {}\n{out}\n{err}", ended.status);
    for line in out.lines().filter(|line| line.contains("SKIPPED: ")) {
        // Past the harness, which swallows what a test prints.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Whether this process is the child that runs `test`.
pub(crate) fn is_child_of(test: &str) -> bool {
    std::env::var(CHILD).as_deref() == Ok(test)
}

/// How the child with `test` has ended.
pub(crate) fn output_of(settings: &str, test: &str) -> Output {
    command(settings, test).output().expect("the child starts")
}

/// Starts the child with `test`.
pub(crate) fn command(settings: &str, test: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg(SECONDS).arg(std::env::current_exe().expect("known"));
    command.args([test, "--exact", "--nocapture", "--include-ignored"]);
    command.env(CHILD, test).env("GOSCHED", settings).env_remove("GOMAXPROCS");
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
