//! Go's own tools open what is written here.

use crate::child::Child;
use crate::programs::TraceFile;
use std::process::{Command, Output};
use std::{env, ffi::OsString};

/// The command `go` that `GOSCHED_TEST_GO` names, else the one in the search path; `None` says so.
fn go() -> Option<OsString> {
    let go = env::var_os("GOSCHED_TEST_GO").unwrap_or_else(|| "go".into());
    let help = Command::new(&go).args(["tool", "trace", "-h"]).output();
    let is_there = help.is_ok_and(|help| text(&help).contains("-pprof"));
    if !is_there {
        println!("SKIPPED: {go:?} has no `tool trace`");
    }
    is_there.then_some(go)
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

#[track_caller]
fn tool(go: &OsString, args: &[&str]) -> Output {
    let output = Command::new(go).args(["tool", "trace"]).args(args).output().expect("it runs");
    let end = text(&output);
    let end = &end[end.ceil_char_boundary(end.len().saturating_sub(2000))..];
    assert!(output.status.success(), "{args:?}: {end}");
    output
}

#[test]
fn go_opens_a_busy_program() {
    let Some(go) = go() else { return };
    let file = TraceFile::new("go");
    let child = Child::new("trace_busy", &[file.path(), "60", "5"]).procs(2);
    child.env("GOSCHED", "traceperiod=5").run().expect_code(0);
    let parsed = text(&tool(&go, &["-d=parsed", file.path()]));
    for words in [
        "stop-the-world (GOMAXPROCS)",
        "Running->Syscall",
        "Syscall->Running",
        "Syscall->Runnable",
        "Running->Waiting Reason=\"chan receive\"",
        "Running->Waiting Reason=\"network\"",
        "Running->Runnable Reason=\"preempted\"",
        "TaskBegin",
        "gosched.undeclared blocking",
        "trace_busy::sockets::{{closure}}",
        "stop-the-world (gc)",
        "GC concurrent mark phase",
    ] {
        assert!(parsed.contains(words), "{words}");
    }
    let wire = text(&tool(&go, &["-d=wire", file.path()]));
    assert!(wire.contains("UserRegionBegin"));
    for profile in ["sched", "sync", "syscall", "net"] {
        let profile = tool(&go, &[&format!("-pprof={profile}"), file.path()]);
        assert!(profile.stdout.len() > 100, "{}", text(&profile));
    }
}
