//! Profiles: Go's own tool opens them, and finds what the program is known to do.

use crate::check;
use crate::child::Child;
use crate::go_tools::{text, tool};
use gosched_trace_format::{CpuSample, Generation, NO_PROCESSOR, Trace};
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

/// Samples that stand in `hot_function` by our own reading: of the goroutines that run it, on a
/// processor, within the trace.
fn hot_samples(file: &[u8]) -> usize {
    let trace = Trace::read(file).expect("it is one");
    let of = |generation: &Generation<'_>| {
        assert!(generation.samples.is_sorted_by_key(|sample| sample.time));
        let is_hot = |sample: &&CpuSample| {
            let frames = generation.stacks.get(&sample.stack).into_iter().flatten();
            let mut functions = frames.map(|frame| frame.function.as_str());
            functions.any(|function| function == "pprof_busy::hot_function")
        };
        let hot: Vec<_> = generation.samples.iter().filter(is_hot).collect();
        for CpuSample { thread, processor, goroutine, .. } in &hot {
            assert!(*goroutine > 1 && *thread != 0, "{hot:?}");
            assert!([0, 1, NO_PROCESSOR].contains(processor), "{hot:?}");
        }
        hot.len()
    };
    trace.generations.iter().map(of).sum()
}

/// The CPU profile's samples are in the trace, by our own reader and by Go's.
fn samples_are_traced(folder: &Folder) {
    let path = folder.0.join("trace");
    let file = fs::read(&path).expect("it was written");
    let (samples, hot) = (check(&file).samples, hot_samples(&file));
    // How many depends on how the kernel merges signals.
    assert!(hot >= 1 && hot as u64 <= samples, "{hot} of {samples}");
    let Some(go) = crate::go_tools::go("trace", "-pprof") else { return };
    let path = path.to_str().expect("UTF-8");
    let parsed = text(&tool(&go, "trace", &["-d=parsed", path]));
    assert_eq!(parsed.matches(" StackSample ").count() as u64, samples);
    let in_hot = parsed.split(" StackSample ").skip(1).filter(|sample| {
        let end = sample.find("\nM=").unwrap_or(sample.len());
        sample[..end].contains("pprof_busy::hot_function")
    });
    assert_eq!(in_hot.count(), hot);
    tool(&go, "trace", &["-d=wire", path]);
    let profile = tool(&go, "trace", &["-pprof=sched", path]);
    assert!(profile.stdout.len() > 100);
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
    samples_are_traced(&folder);
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
