//! Go's own tools open what is written here.

use crate::child::Child;
use crate::programs::TraceFile;
use std::process::{Command, Output};
use std::{env, ffi::OsString};

/// The command `go` that `GOSCHED_TEST_GO` names, else the one in the search path, if it has this tool,
/// whose help names this option; `None` says so.
pub(crate) fn go(tool: &str, option: &str) -> Option<OsString> {
    let go = env::var_os("GOSCHED_TEST_GO").unwrap_or_else(|| "go".into());
    let help = Command::new(&go).args(["tool", tool, "-h"]).output();
    let is_there = help.is_ok_and(|help| text(&help).contains(option));
    if !is_there {
        println!("SKIPPED: {go:?} has no `tool {tool}`");
    }
    is_there.then_some(go)
}

pub(crate) fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

#[track_caller]
pub(crate) fn tool(go: &OsString, tool: &str, args: &[&str]) -> Output {
    let output = Command::new(go).args(["tool", tool]).args(args).output().expect("it runs");
    let end = text(&output);
    let end = &end[end.ceil_char_boundary(end.len().saturating_sub(2000))..];
    assert!(output.status.success(), "{args:?}: {end}");
    output
}

#[test]
fn go_opens_a_busy_program() {
    let Some(go) = go("trace", "-pprof") else { return };
    let file = TraceFile::new("go");
    let child = Child::new("trace_busy", &[file.path(), "60", "5"]).procs(2);
    child.env("GOSCHED", "traceperiod=5").run().expect_code(0);
    let parsed = text(&tool(&go, "trace", &["-d=parsed", file.path()]));
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
    let wire = text(&tool(&go, "trace", &["-d=wire", file.path()]));
    assert!(wire.contains("UserRegionBegin"));
    for profile in ["sched", "sync", "syscall", "net"] {
        let profile = tool(&go, "trace", &[&format!("-pprof={profile}"), file.path()]);
        assert!(profile.stdout.len() > 100, "{}", text(&profile));
    }
}
