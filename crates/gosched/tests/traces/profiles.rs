//! Profiles: Go's own tool opens them, and finds what the program is known to do.

use crate::child::Child;
use crate::go_tools::{text, tool};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

const PROGRAM: &str = include_str!("../../../../testprogs/src/bin/pprof_busy.rs");

/// The folder into which the program has written; removed when dropped, unless the test fails.
struct Folder(PathBuf);

impl Folder {
    fn written() -> Folder {
        let name = format!("profiles-{}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Child::new("pprof_busy", &[folder.to_str().expect("UTF-8")]).procs(2).run().expect_code(0);
        Folder(folder)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// `pprof_busy.rs` and the number of the line that has `code`.
fn line_of(code: &str) -> String {
    let line = PROGRAM.lines().position(|line| line.contains(code)).expect("it is there") + 1;
    format!("testprogs/src/bin/pprof_busy.rs:{line}")
}

#[track_caller]
fn expect(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn name_what_the_program_does() {
    let folder = Folder::written();
    let (receives, contends) = (line_of("rx.recv().expect("), line_of("= lock.lock().expect("));
    expect(&folder.read("block.1"), &["--- contention:\n", "wait_for_a_message", &receives]);
    expect(&folder.read("block.1"), &["hold_the_lock", &contends]);
    expect(&folder.read("mutex.1"), &["--- mutex:\n", "pprof_busy::hold_the_lock+0x"]);
    let goroutines =
        ["goroutine profile: total 3\n", "pprof_busy::park_here+0x", "{\"work\":\"none\"}"];
    expect(&folder.read("goroutine.1"), &goroutines);
    expect(&folder.read("goroutine.2"), &["[park] {work: none}:\npprof_busy::park_here(...)\n\t"]);
    expect(&folder.read("threadcreate.1"), &["threadcreate profile: total "]);
    if let Some(go) = crate::go_tools::go("pprof", "-top") {
        go_finds_the_same(&go, &folder, &receives, &contends);
    }
}

fn go_finds_the_same(go: &OsString, folder: &Folder, receives: &str, contends: &str) {
    let pprof = |args: &[&str], profile: &str| {
        let file = folder.0.join(profile);
        text(&tool(go, "pprof", &[args, &[file.to_str().expect("UTF-8")]].concat()))
    };
    let top = |profile: &str| pprof(&["-top", "-cum", "-nodecount=100"], profile);
    let lines = |profile: &str| pprof(&["-top", "-lines", "-cum", "-nodecount=100"], profile);
    let cpu = top("cpu");
    expect(&cpu, &["Type: cpu", "pprof_busy::hot_function"]);
    let share = cpu.lines().find(|line| line.ends_with("pprof_busy::hot_function")).map(|line| {
        let share = line.split_whitespace().nth(4).and_then(|share| share.strip_suffix('%'));
        share.and_then(|share| share.parse::<f64>().ok()).expect("a share")
    });
    assert!(share.is_some_and(|share| share > 50.0), "{cpu}");
    expect(&pprof(&["-tags"], "cpu"), &["work: Total ", "labelled"]);
    expect(&top("block"), &["Type: delay", "pprof_busy::wait_for_a_message", "Core::wait"]);
    expect(&lines("block"), &[receives, contends]);
    expect(&top("mutex"), &["Type: delay", "pprof_busy::hold_the_lock", "unlock"]);
    expect(&top("goroutine"), &["Type: goroutine", "pprof_busy::park_here"]);
    expect(&pprof(&["-tags"], "goroutine"), &["work: Total ", "none"]);
    expect(&top("threadcreate"), &["Type: threadcreate"]);
}
