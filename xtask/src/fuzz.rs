//! `cargo xtask fuzz`: the tests that make inputs for parsers, for as long as one likes.

use crate::plan::{self, Fuzzed};
use std::env;
use std::process::{Command, ExitCode};

/// Runs one target; prints how many inputs there were, and which share of them was understood.
pub(crate) fn run(name: &str, seconds: &str) -> ExitCode {
    if seconds.parse::<u64>().is_err() {
        eprintln!("xtask: --secs {seconds}: not a number");
        return ExitCode::from(2);
    }
    let Some(Fuzzed { package, kind, test, .. }) = plan::FUZZED.iter().find(|f| f.name == name)
    else {
        eprintln!("xtask: no parser is called {name}\n\n{}", list());
        return ExitCode::from(2);
    };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--release", "--target-dir", "target/fuzz", "--package", package]);
    cargo.args(*kind).args(["--", "--exact", test, "--nocapture"]);
    // A sum that overflows is a panic here, as are assertions.
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    cargo.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
    cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    cargo.env("GOSCHED_FUZZ_SECS", seconds);
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// All targets.
pub(crate) fn list() -> String {
    let mut text = "Parsers:\n".to_owned();
    for Fuzzed { name, what, .. } in plan::FUZZED {
        text += &format!("  {name:<10} {what}\n");
    }
    text
}
