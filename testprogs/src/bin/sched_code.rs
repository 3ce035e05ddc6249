//! What `main` may return, and the code that the process then ends with.

use std::env;
use std::process::ExitCode;

fn main() {
    match env::args().nth(1).expect("a kind").as_str() {
        "ok" => ok(),
        "error" => error(),
        "seven" => seven(),
        other => panic!("no kind {other}"),
    }
}

#[gosched::main]
fn ok() -> Result<(), String> {
    Ok(())
}

#[gosched::main]
fn error() -> Result<(), String> {
    Err("it failed".into())
}

#[gosched::main]
fn seven() -> ExitCode {
    ExitCode::from(7)
}
