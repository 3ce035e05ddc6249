use super::{measure, settings};
use crate::record::Cell;
use crate::synthetic::{cell, queue};
use std::process::Command;

fn small() -> Cell {
    cell("busy", 1, queue(1, 1), &[]).cell
}

/// What a child process comes to that runs this line of the shell.
fn child(line: &str) -> Result<(), String> {
    let command = |_: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    };
    measure(&small(), &command).map(|_| ())
}

#[test]
fn a_child_that_fails_is_an_error() {
    assert!(child("exit 3").expect_err("failed").contains("exit status: 3"));
    assert!(child("kill -9 $$").expect_err("killed").contains("signal: 9"));
}

#[test]
fn a_child_that_prints_something_else_is_an_error() {
    assert!(child("echo hello").expect_err("no JSON").contains("can't read what"));
    assert!(child("echo '{}'").expect_err("no fields").contains("missing field"));
}

#[test]
fn a_child_that_lies_is_an_error() {
    let mut lie = cell("busy", 1, queue(1, 1), &[]);
    lie.gomaxprocs = 7;
    let json = serde_json::to_string(&lie).expect("numbers are JSON");
    assert!(child(&format!("echo '{json}'")).expect_err("a lie").contains("7 processors"));
}

#[test]
fn a_program_that_is_missing_is_an_error() {
    let missing = |_: &str| Command::new("/there/is/no/such/program");
    assert!(measure(&small(), &missing).expect_err("missing").contains("can't start"));
}

#[test]
fn settings_of_a_variant_come_after_those_of_the_user() {
    let inherited = || Some("panic=abort".to_owned());
    assert_eq!(settings("", inherited()), None);
    assert_eq!(settings("", None), None);
    assert_eq!(settings("slice=off", None).as_deref(), Some("slice=off"));
    assert_eq!(settings("slice=off", Some(String::new())).as_deref(), Some("slice=off"));
    assert_eq!(settings("slice=off", inherited()).as_deref(), Some("panic=abort,slice=off"));
}
