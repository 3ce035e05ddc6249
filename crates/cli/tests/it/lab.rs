//! Real runs of `gosched lab`, small ones.

use crate::gosched::{Run, gosched};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const GOROUTINES: u64 = 12;
const WORK_NS: u64 = 1_000_000;
const VARIANTS: [&str; 6] = ["busy", "unstopped", "yields", "sleeps", "blocks", "declares"];
const RIVALS: [&str; 2] = ["threads", "pool"];

/// The cells of a run on a machine with so many CPUs: threads have no more than those.
fn cells_of(cpus: u64) -> Vec<String> {
    let all = VARIANTS.iter().chain(&RIVALS).flat_map(|name| [1, 2].map(|n| (*name, n)));
    let all = all.filter(|(name, n)| *name != "threads" || *n <= cpus);
    all.map(|(name, n)| format!("{name} {n}")).collect()
}
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
    assert_eq!(names.collect::<Vec<_>>(), cells_of(number(&results, "cpus")));
    cells.iter().for_each(check_cell);
    // A probe that is kept from running may miss a cell of so little work.
    let probed = cells.iter().filter(|cell| !list(cell, "probe").is_empty()).count();
    assert!(probed > cells.len() / 2, "the probe slept in {probed} of {} cells", cells.len());

    let written = fs::read_to_string(out.join("results.json")).expect("results.json is written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), results);
    check_traces(&results, &out);
    check_notes(&results, &out);
}

/// Every variant with goroutines left a trace that the command finds right, and the results count
/// its events.
fn check_traces(results: &Value, out: &Path) {
    let traces = list(results, "traces");
    let names = traces.iter().map(|traced| {
        format!("{} {}", traced["variant"].as_str().unwrap_or("?"), number(traced, "procs"))
    });
    let expected = VARIANTS.iter().flat_map(|variant| [1, 2].map(|n| format!("{variant} {n}")));
    assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for traced in traces {
        let file = out.join(traced["file"].as_str().unwrap_or("?"));
        let run = gosched(["trace", "check", file.to_str().expect("UTF-8")]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let events = number(traced, "events");
        assert!(run.stdout.contains(&format!(" {events} events ")), "{}", run.stdout);
        assert_eq!(number(traced, "goroutines"), GOROUTINES);
        assert!(number(traced, "most_running") <= number(traced, "procs"));
        let of_processors = list(traced, "processors").iter().map(|processor| {
            let events = processor["events"].as_object().expect("kinds").values();
            events.filter_map(Value::as_u64).sum::<u64>()
        });
        assert_eq!(of_processors.sum::<u64>(), events);
        // Its end asks for one; there are others in the background now and then.
        assert!(!list(traced, "collections").is_empty(), "{traced}");
    }
}

/// The rows below the heading `title` in the notes, without the row of names.
fn table<'a>(notes: &'a str, title: &str) -> Vec<Vec<&'a str>> {
    let heading = format!("### {title}\n");
    let (_, after) = notes.split_once(&heading).unwrap_or_else(|| panic!("{title}: {notes}"));
    let rows = after.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Whether `text` is what is written for so many ns, in ms with three digits.
fn is_ms(text: &str, ns: f64) -> bool {
    let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    let written: f64 = text.parse().unwrap_or(f64::NAN);
    (written - ns / 1e6).abs() <= 0.5001 * 10_f64.powi(-decimals)
}

/// The numbers in the notes are those of the results.
fn check_notes(results: &Value, out: &Path) {
    let notes = fs::read_to_string(out.join("NOTES.md")).expect("NOTES.md is written");
    let cells = list(results, "cells");
    let columns = ["min", "p50", "p90", "p99", "max", "mean"];
    for (title, name) in [
        ("Completion since the start", "done"),
        ("Wait to first run", "wait"),
        ("Own run time", "own"),
        ("Waiting or asleep after the first run", "rest"),
    ] {
        let rows = table(&notes, title);
        assert_eq!(rows.len(), cells.len(), "{title}");
        for (row, cell) in rows.iter().zip(cells) {
            let summary = &cell["summary"];
            assert_eq!(Some(row[0]), summary["variant"].as_str());
            assert_eq!(row[1], number(summary, "procs").to_string());
            for (text, column) in row[2..].iter().zip(columns) {
                let ns = summary[name][column].as_f64().expect("a number");
                assert!(is_ms(text, ns), "{title}, {column}: {text} is not {ns} ns in ms");
            }
        }
    }
    let rows = table(&notes, "How late the probe woke");
    for (row, cell) in rows.iter().zip(cells) {
        let summary = &cell["summary"];
        assert_eq!(row[2], number(summary, "probe_samples").to_string());
        let ns = summary["late_any_time"]["p99"].as_f64().expect("a number");
        assert!(is_ms(row[10], ns), "{row:?} {ns}");
    }
    let rows = table(&notes, "Events in the traces, by P");
    let processors = list(results, "traces").iter().flat_map(|traced| list(traced, "processors"));
    let processors: Vec<_> = processors.collect();
    assert_eq!(rows.len(), processors.len());
    for (row, processor) in rows.iter().zip(processors) {
        let events = |kind: &str| processor["events"][kind].as_u64().unwrap_or(0).to_string();
        let kinds = ["ProcStart", "ProcStop", "ProcSteal", "GoCreate", "GoStart"];
        assert_eq!(row[5..10], kinds.map(events), "{processor}");
    }
    for finding in list(results, "findings") {
        for sentence in list(finding, "answer") {
            let sentence = sentence.as_str().expect("text");
            assert!(notes.contains(sentence), "{sentence}");
        }
    }
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
    if ["busy", "unstopped", "yields", "threads", "pool"]
        .iter()
        .any(|computes| asked["variant"] == *computes)
    {
        assert_eq!(number(task, "rounds"), number(asked, "rounds"), "{task}");
        assert!(own > 0, "{task}");
    } else {
        assert_eq!((own, number(task, "rounds")), (0, 0), "{task}");
        assert!(done - first >= WORK_NS, "{task}");
    }
    assert_eq!(number(task, "yields") > 0, asked["variant"] == "yields", "{task}");
}

/// One run with tables, and its folder, for whoever only looks.
static REPORT: LazyLock<(Run, PathBuf)> = LazyLock::new(|| {
    let out = folder("report");
    (lab(&[], &out), out)
});

#[test]
fn the_report_has_notes_and_every_plot_they_show() {
    let (run, out) = &*REPORT;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let notes = fs::read_to_string(out.join("NOTES.md")).expect("NOTES.md is written");
    for words in ["# Schedule forensics", "### Why is the tail long on 1 processor", "| busy "] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    let plots: Vec<&str> =
        notes.split("](").skip(1).filter_map(|text| text.split(')').next()).collect();
    let pages: Vec<&str> = plots.iter().copied().filter(|file| file.ends_with(".html")).collect();
    assert_eq!(pages, ["index.html"]);
    let plots: Vec<&str> = plots.into_iter().filter(|file| file.ends_with(".svg")).collect();
    let computing = ["busy", "unstopped", "yields", "threads", "pool"];
    let expected = VARIANTS
        .iter()
        .chain(&RIVALS)
        .flat_map(|name| ["completion", "wait"].map(|what| format!("{what}-{name}.svg")))
        .chain(computing.map(|name| format!("own-{name}.svg")))
        .chain(VARIANTS.iter().flat_map(|name| [1, 2].map(|n| format!("timeline-{name}-{n}.svg"))));
    for file in expected {
        assert!(plots.contains(&file.as_str()), "{file}: {plots:?}");
    }
    // A probe that is kept from running may miss cells of so little work.
    assert!(plots.iter().any(|file| file.starts_with("lateness-")), "{plots:?}");
    let page = fs::read_to_string(out.join("index.html")).expect("index.html is written");
    assert_eq!(page.matches("<svg ").count(), plots.len());
    for needs in ["src=", "@import", "url(", "https:"] {
        assert!(!page.contains(needs), "the page is to stand for itself: {needs}");
    }
    for plot in plots {
        let svg = fs::read_to_string(out.join(plot)).expect("the plot is beside the notes");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{plot}");
    }
}

#[test]
fn tables_are_printed_and_progress_is_told_apart() {
    let (run, _) = &*REPORT;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = run
        .stdout
        .lines()
        .filter(|line| VARIANTS.iter().any(|name| line.starts_with(&format!("{name} "))));
    assert_eq!(rows.count(), 2 * VARIANTS.len() + 3, "{}", run.stdout);
    for variant in ["busy", "unstopped"] {
        let question = format!("Is a goroutine stopped while it computes (*{variant}*)?");
        assert!(run.stdout.contains(&question), "{}", run.stdout);
    }
    let cells = run.stderr.lines().find_map(|line| line.trim_start().strip_prefix("1 of "));
    let cells = cells.and_then(|rest| rest.split(' ').next()).expect("the first is told");
    assert!(run.stderr.contains(&format!("{cells} of {cells} ")), "{}", run.stderr);
    assert!(run.stderr.contains("busy on 1, with a trace"), "{}", run.stderr);
    assert!(run.stderr.contains("NOTES.md"), "{}", run.stderr);
}

/// Go is the command that `GOSCHED_TEST_GO` names, else the one in the search path.
#[test]
fn go_opens_the_traces() {
    let go = std::env::var_os("GOSCHED_TEST_GO").unwrap_or_else(|| "go".into());
    let help = Command::new(&go).args(["tool", "trace", "-h"]).output();
    if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stderr).contains("-pprof")) {
        println!("SKIPPED: {go:?} has no `tool trace`");
        return;
    }
    let (_, out) = &*REPORT;
    for (file, has) in [("yields-2.trace", "runtime.Gosched"), ("declares-1.trace", "Syscall")] {
        let parsed = Command::new(&go)
            .args(["tool", "trace", "-d=parsed"])
            .arg(out.join(file))
            .output()
            .expect("it runs");
        assert!(parsed.status.success(), "{file}: {}", String::from_utf8_lossy(&parsed.stderr));
        let text = String::from_utf8_lossy(&parsed.stdout);
        for words in [has, "stop-the-world (gc)", "GC concurrent mark phase"] {
            assert!(text.contains(words), "{file} has no {words}");
        }
    }
}

#[test]
fn results_are_printed_even_if_they_can_not_be_written() {
    let small = ["lab", "--goroutines", "2", "--work", "1", "--procs", "1", "--json"];
    let run = gosched(small.iter().chain(&["--out", "/dev/null/report"]));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("can't write the report into"), "{}", run.stderr);
    assert!(run.stderr.contains("--out"), "{}", run.stderr);
    let results: Value = serde_json::from_str(&run.stdout).expect("nothing is lost");
    assert_eq!(list(&results, "cells").len(), VARIANTS.len() + RIVALS.len());
    assert_eq!(list(&results, "traces"), [Value::Null; 0]);
}

#[test]
fn a_runtime_that_is_told_otherwise_is_noticed() {
    let out = folder("otherwise");
    let output = Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(["lab", "--goroutines", "2", "--work", "1", "--procs", "1", "--no-trace"])
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
    let output = Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(["lab", "--goroutines", "2", "--work", "1", "--procs", "1", "--no-trace"])
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
