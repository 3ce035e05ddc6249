//! Real runs of `gosched lab`, small ones.

use crate::gosched::{Run, gosched};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const GOROUTINES: u64 = 12;
const WORK_NS: u64 = 1_000_000;
const VARIANTS: [&str; 6] = ["busy", "unstopped", "yields", "sleeps", "blocks", "declares"];
const CELLS: usize = 2 * VARIANTS.len();
const SMALL: [&str; 7] = ["lab", "--goroutines", "12", "--work", "1", "--procs", "2,1,2"];

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the last run left it");
    }
    folder
}

fn lab(options: &[&str], out: &Path) -> Run {
    let out = out.to_str().expect("the target folder is UTF-8");
    gosched(SMALL.iter().chain(options).chain(&["--out", out]))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn all_results_are_consistent() {
    let out = folder("consistent");
    let run = lab(&["--json"], &out);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let results: Value = serde_json::from_str(&run.stdout).expect("--json prints JSON");
    assert_eq!(list(&results, "failures"), [Value::Null; 0]);
    assert!(!list(&results, "findings").is_empty());

    let cells = list(&results, "cells");
    let names = cells.iter().map(|cell| {
        let cell = &cell["cell"];
        format!("{} {}", cell["variant"].as_str().unwrap_or("?"), number(cell, "procs"))
    });
    let expected = VARIANTS.iter().flat_map(|variant| [1, 2].map(|n| format!("{variant} {n}")));
    assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    cells.iter().for_each(check_cell);
    // A probe that is kept from running may miss a cell of so little work.
    let probed = cells.iter().filter(|cell| !list(cell, "probe").is_empty()).count();
    assert!(probed > cells.len() / 2, "the probe slept in {probed} of {} cells", cells.len());

    let written = fs::read_to_string(out.join("results.json")).expect("results.json is written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), results);
}

fn check_cell(cell: &Value) {
    let asked = &cell["cell"];
    assert_eq!(number(cell, "gomaxprocs"), number(asked, "procs"));
    assert_eq!(number(asked, "goroutines"), GOROUTINES);
    assert_eq!(number(asked, "work_ns"), WORK_NS);
    let tasks = list(cell, "tasks");
    assert_eq!(tasks.len() as u64, GOROUTINES);
    for task in tasks {
        check_task(task, asked);
        assert!(number(task, "done_ns") <= number(cell, "elapsed_ns"), "{task}");
    }
    // Waits are differences, and so is their sum.
    let sum = |name| tasks.iter().map(|task| number(task, name)).sum::<u64>();
    let mean = |name: &str| cell["summary"][name]["mean"].as_f64().unwrap_or(-1.0);
    let parts = mean("wait") + mean("own") + mean("rest");
    let whole = (sum("done_ns") - sum("created_ns")) as f64 / GOROUTINES as f64;
    assert!((parts - whole).abs() < 1.0, "{parts} {whole}");
}

fn check_task(task: &Value, asked: &Value) {
    let [created, first, done, own] =
        ["created_ns", "first_run_ns", "done_ns", "own_ns"].map(|name| number(task, name));
    assert!(created <= first && first + own <= done, "{task}");
    if ["busy", "unstopped", "yields"].iter().any(|computes| asked["variant"] == *computes) {
        assert_eq!(number(task, "rounds"), number(asked, "rounds"), "{task}");
        assert!(own > 0, "{task}");
    } else {
        assert_eq!((own, number(task, "rounds")), (0, 0), "{task}");
        assert!(done - first >= WORK_NS, "{task}");
    }
    assert_eq!(number(task, "yields") > 0, asked["variant"] == "yields", "{task}");
}

#[test]
fn the_report_has_notes_and_every_plot_they_show() {
    let out = folder("report");
    let run = lab(&[], &out);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let notes = fs::read_to_string(out.join("NOTES.md")).expect("NOTES.md is written");
    for words in ["# Schedule forensics", "### Why is the tail long on 1 processor", "| busy "] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    let plots: Vec<&str> =
        notes.split("](").skip(1).filter_map(|text| text.split(')').next()).collect();
    assert_eq!(plots.len(), 2 * VARIANTS.len(), "{plots:?}");
    for plot in plots {
        let svg = fs::read_to_string(out.join(plot)).expect("the plot is beside the notes");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{plot}");
    }
}

#[test]
fn tables_are_printed_and_progress_is_told_apart() {
    let run = lab(&[], &folder("tables"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = run
        .stdout
        .lines()
        .filter(|line| VARIANTS.iter().any(|name| line.starts_with(&format!("{name} "))));
    assert_eq!(rows.count(), CELLS, "{}", run.stdout);
    for variant in ["busy", "unstopped"] {
        let question = format!("Is a goroutine stopped while it computes (*{variant}*)?");
        assert!(run.stdout.contains(&question), "{}", run.stdout);
    }
    assert!(run.stderr.contains("12 of 12"), "{}", run.stderr);
    assert!(run.stderr.contains("NOTES.md"), "{}", run.stderr);
}

#[test]
fn results_are_printed_even_if_they_can_not_be_written() {
    let run = lab(&["--json"], Path::new("/dev/null/report"));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("can't write the report into"), "{}", run.stderr);
    assert!(run.stderr.contains("--out"), "{}", run.stderr);
    let results: Value = serde_json::from_str(&run.stdout).expect("nothing is lost");
    assert_eq!(list(&results, "cells").len(), CELLS);
}

#[test]
fn a_runtime_that_is_told_otherwise_is_noticed() {
    let out = folder("otherwise");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(["lab", "--goroutines", "2", "--work", "1", "--procs", "1"])
        .arg("--out")
        .arg(&out)
        .env("GOSCHED", "procs=2")
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("2 processors instead of 1; does GOSCHED set them?"), "{stdout}");
    assert!(out.join("NOTES.md").exists());
}

#[test]
fn results_are_written_even_if_they_can_not_be_printed() {
    let out = folder("unprinted");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(["lab", "--goroutines", "2", "--work", "1", "--procs", "1"])
        .arg("--out")
        .arg(&out)
        .env_remove("GOSCHED")
        .stdout(full)
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("can't print: "), "{stderr}");
    assert!(out.join("NOTES.md").exists());
}
