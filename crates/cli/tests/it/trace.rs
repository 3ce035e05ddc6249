//! `gosched trace` on small traces made here.

use crate::gosched::{Run, gosched};
use gosched_trace_format::{
    CpuSample, EVENT_MAX, Frame, HEADER, Kind, Table, batch_header, encode, frequency_batch,
    sample_batches,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A processor, two goroutines, a wait of 2 us, a stop of 1 us.
const RIGHT: [(Kind, u64, &[u64]); 13] = [
    (Kind::ProcStatus, 0, &[0, 1]),
    (Kind::GoStatusStack, 0, &[1, 100, 2, 1]),
    (Kind::ProcsChange, 1000, &[1, 0]),
    (Kind::GoCreate, 1000, &[2, 2, 1]),
    (Kind::STWBegin, 1000, &[2, 1]),
    (Kind::STWEnd, 1000, &[]),
    (Kind::UserRegionBegin, 0, &[0, 3, 1]),
    (Kind::UserRegionEnd, 500, &[0, 3, 1]),
    (Kind::GoBlock, 500, &[1, 1]),
    (Kind::GoStart, 1000, &[2, 1]),
    (Kind::GoUnblock, 1000, &[1, 1, 2]),
    (Kind::GoDestroy, 1000, &[]),
    (Kind::GoStart, 0, &[1, 2]),
];

fn file(name: &str, events: &[(Kind, u64, &[u64])]) -> PathBuf {
    sampled(name, events, &[])
}

/// With samples of the CPU profiler that stand there.
fn sampled(name: &str, events: &[(Kind, u64, &[u64])], stacks: &[u64]) -> PathBuf {
    let mut out = HEADER.to_vec();
    frequency_batch(&mut out, 1, 1000, 1_000_000_000);
    let mut payload = Vec::new();
    for (kind, dt, args) in events {
        let mut bytes = [0; EVENT_MAX];
        let len = encode(&mut bytes, *kind, *dt, args).expect("there is room");
        payload.extend_from_slice(&bytes[..len]);
    }
    batch_header(&mut out, 1, 100, 1000, payload.len());
    out.extend_from_slice(&payload);
    let mut table = Table::new();
    for (id, text) in [(1, "chan receive"), (2, "GOMAXPROCS"), (3, "parse")] {
        table.string(id, text);
    }
    for (id, function) in [(1, "first"), (2, "second")] {
        let file = "main.rs".into();
        table.stack(id, &[Frame { pc: id, function: function.into(), file, line: 3 }]);
    }
    let at = |stack: &u64| CpuSample {
        time: 2000,
        thread: 100,
        processor: 0,
        goroutine: 1,
        stack: *stack,
    };
    sample_batches(&mut out, 1, 1000, &stacks.iter().map(at).collect::<Vec<_>>());
    table.write(&mut out, 1, 1000);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}.trace"));
    fs::write(&path, out).expect("the target folder takes it");
    path
}

fn trace(act: &str, path: &Path) -> Run {
    gosched(["trace", act, path.to_str().expect("the target folder is UTF-8")])
}

#[test]
fn a_right_one() {
    let path = file("right", &RIGHT);
    let run = trace("check", &path);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let says = "right: 1 generations, 13 events in 0.000 s, at most 1 processors ran at once\n";
    assert_eq!(run.stdout, says);
}

#[test]
fn a_wrong_one_ends_with_1() {
    let path = file("wrong", &[&RIGHT[..2], &[(Kind::GoStart, 5, &[7, 1])]].concat());
    for act in ["check", "summary", "chrome"] {
        let run = trace(act, &path);
        assert_eq!(run.code, Some(1), "{act}");
        assert!(run.stderr.contains("no event can be next: [GoStart"), "{}", run.stderr);
    }
    let missing = Path::new("no such file");
    let run = trace("check", missing);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("can't read no such file"), "{}", run.stderr);
}

#[test]
fn more_run_than_there_are() {
    let mut events = RIGHT.to_vec();
    events[2] = (Kind::ProcsChange, 1000, &[0, 0]);
    let run = trace("check", &file("excess", &events));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("1 of 0 processors run"), "{}", run.stderr);
}

#[test]
fn a_summary() {
    let run = trace("summary", &file("summary", &RIGHT));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for words in [
        "2 goroutines",
        "GOMAXPROCS: 1 times, 0.000001 s, mean 1.0 us",
        "first: 1 goroutines\n  runs: 2 times, 0.000005 s",
        "  waits: chan receive: 1 times, 0.000002 s, mean 2.0 us, longest 2.0 us",
        "second: 1 goroutines\n  runs: 1 times, 0.000002 s",
        "  waits for a processor: 1 times, 0.000004 s",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
}

#[test]
fn for_programs() {
    let path = file("json", &RIGHT);
    let json = |act: &str| -> Value {
        let run = gosched(["trace", act, path.to_str().expect("text"), "--json"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        serde_json::from_str(&run.stdout).expect("it is JSON")
    };
    let check = json("check");
    assert_eq!((&check["events"], &check["most_running"]), (&13.into(), &1.into()));
    let summary = json("summary");
    let first = &summary["functions"]["first"];
    assert_eq!((&first["goroutines"], &first["runs"]["count"]), (&1.into(), &2.into()));
    assert_eq!(first["waits"]["chan receive"]["longest_ns"], 2_000);
    assert_eq!(summary["stops_of_the_world"]["GOMAXPROCS"]["sum_ns"], 1_000);
    assert_eq!(summary["processors"]["P0"]["held"]["count"], 1);
}

#[test]
fn samples_of_the_cpu_profiler() {
    let path = sampled("sampled", &RIGHT, &[1, 2, 2, 0]);
    let checked = trace("check", &path);
    assert!(checked.stdout.ends_with(" ran at once, 4 CPU samples\n"), "{}", checked.stdout);
    let summary = trace("summary", &path).stdout;
    let lines = "\nCPU samples: 4, in\n         2  second\n         1  ?\n         1  first\n";
    assert!(summary.contains(lines), "{summary}");
    let run = trace("check", &sampled("unknown", &RIGHT, &[9]));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("invalid stack ID 9 for a CPU sample"), "{}", run.stderr);
}

#[test]
fn for_chrome() {
    let run = trace("chrome", &file("chrome", &RIGHT));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let events = json["traceEvents"].as_array().expect("a list");
    let named = |name: &str| events.iter().find(|event| event["name"] == name);
    let second = named("second 2").expect("it runs");
    assert_eq!((&second["ph"], &second["dur"]), (&"X".into(), &2.0.into()));
    for name in ["first 1", "stop-the-world (GOMAXPROCS)", "parse", "GOMAXPROCS", "thread_name"] {
        assert!(named(name).is_some(), "{name}");
    }
}
