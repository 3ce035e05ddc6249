//! Runs the real binary.

use std::process::{Command, Output};

/// A finished run of `gosched`.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn gosched<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    // Processors that somebody's shell asks for are not what is tested.
    gosched_with(args, &[("GOMAXPROCS", "3")])
}

/// As [`gosched`], with these variables of the runtime's and no others.
pub(crate) fn gosched_with<S: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = S>,
    variables: &[(&str, &str)],
) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(args)
        .env_remove("GOMAXPROCS")
        .env_remove("GOSCHED")
        .envs(variables.iter().copied())
        .output();
    let Output { status, stdout, stderr } = output.expect("the binary was built");
    Run { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("gosched prints UTF-8")
}
