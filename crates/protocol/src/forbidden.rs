//! How the tables of transitions show that a forbidden one aborts: in a child process.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};

/// Names the one cell that a child process is to try.
const CELL: &str = "GOSCHED_FORBIDDEN_CELL";
const SIGABRT: i32 = 6;

/// Asserts that `act`, which the test with the path `test` calls `cell`, aborts with a message that
/// contains `message`.
///
/// The child runs the same test again, and leaves it when it comes to this cell.
pub(crate) fn assert_aborts<R>(test: &str, cell: &str, message: &str, act: impl FnOnce() -> R) {
    if let Ok(wanted) = env::var(CELL) {
        if wanted == cell {
            act();
            exit(0);
        }
        return;
    }
    if cfg!(miri) {
        return; // it has no processes
    }
    let child = Command::new(env::current_exe().expect("the test has a file"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CELL, cell)
        .output()
        .expect("the test can be started again");
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(SIGABRT), "{cell}: {}\n{stderr}", child.status);
    assert!(stderr.contains(message), "{cell}: {message:?} is not in {stderr:?}");
}
