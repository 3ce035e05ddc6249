//! A shared library with goroutines inside, in programs that are none of Rust's: thread-locals are
//! dynamic, libc is not interposed, and the first call comes from a thread that the runtime has never
//! seen. The library is `testprogs/examples/embedded.rs`.

use crate::child::{Ended, library, run_other};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hazards/fixtures").join(name)
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("SKIPPED: no program `{program}`");
    }
    there
}

#[track_caller]
fn expect_right(ended: &Ended, right: u64) {
    assert_eq!(ended.number("right"), right);
}

#[test]
fn in_a_program_of_c() {
    if !is_there("cc") {
        return;
    }
    let program = env::temp_dir().join(format!("gosched-embed-{}", std::process::id()));
    let mut cc = Command::new("cc");
    cc.arg("-o").arg(&program).arg(fixture("embed.c")).args(["-ldl", "-pthread"]);
    assert!(cc.status().expect("it runs").success());
    let ended = run_other(&program, &[&library()]);
    let _ = std::fs::remove_file(&program);
    // Four threads, and the first one.
    expect_right(&ended, 5);
}

#[test]
fn in_python() {
    if !is_there("python3") {
        return;
    }
    let ended = run_other(Path::new("python3"), &[&fixture("embed.py"), &library()]);
    // As above, and functions of Python's on goroutines.
    expect_right(&ended, 6);
}
