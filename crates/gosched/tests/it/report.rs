//! Reports of the scheduler, read while the program runs.

use crate::child::Child;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Stdio};

/// Calls `read` with the lines of a program that reports by `setting`, until it has enough.
fn watch(setting: &str, read: impl FnOnce(&mut dyn Iterator<Item = String>)) {
    let mut command = Child::new("sched_report", &[]).procs(2).env("GOSCHED", setting).command();
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the child starts");
    let errors: ChildStderr = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(errors).lines().map(|line| line.expect("it is text"));
    read(&mut lines);
    // The end of its input is its end; what it still prints is read, so that it does not wait.
    drop(child.stdin.take());
    lines.for_each(drop);
    assert!(child.wait().expect("it ends").success());
}

/// The `name=value` fields after the head of a line.
fn fields<'a>(line: &'a str, head: &str) -> HashMap<&'a str, &'a str> {
    let rest = line.strip_prefix(head).unwrap_or_else(|| panic!("{head:?} begins no {line:?}"));
    let (_, rest) = rest.split_once(':').unwrap_or_else(|| panic!("no colon: {line:?}"));
    // A reason has spaces in it.
    let rest = rest.split('[').next().unwrap_or(rest);
    let pairs = rest.split(' ').filter_map(|field| field.split_once('='));
    pairs.collect()
}

fn names(line: &str, head: &str) -> Vec<String> {
    let rest = line.split_once(": ").unwrap_or_else(|| panic!("{head}: {line:?}")).1;
    let pairs = rest.split(' ').filter_map(|field| field.split_once('='));
    pairs.map(|(name, _)| name.to_owned()).collect()
}

const SUMMARY: [&str; 7] = [
    "gomaxprocs",
    "idleprocs",
    "threads",
    "spinningthreads",
    "needspinning",
    "idlethreads",
    "runqueue",
];

#[test]
fn a_line_each_time() {
    watch("schedtrace=5", |lines| {
        let mut ms = 0;
        for line in lines.take(5) {
            let (time, rest) = line.split_once("ms: ").unwrap_or_else(|| panic!("{line:?}"));
            let now = time.strip_prefix("SCHED ").and_then(|time| time.parse::<u64>().ok());
            let now = now.unwrap_or_else(|| panic!("{line:?}"));
            assert!(now > ms, "{line:?} after {ms}");
            ms = now;
            assert_eq!(names(&line, "SCHED")[..7], SUMMARY, "{line:?}");
            assert!(rest.starts_with("gomaxprocs=2 idleprocs="), "{line:?}");
            let (_, lists) = rest.split_once(" [ ").unwrap_or_else(|| panic!("{line:?}"));
            let (queues, ticks) =
                lists.split_once(" ] schedticks=[ ").unwrap_or_else(|| panic!("{line:?}"));
            for list in [queues, ticks.strip_suffix(" ]").unwrap_or_else(|| panic!("{line:?}"))] {
                let numbers = list.split(' ').map(|n| n.parse::<u64>().expect("a number"));
                assert_eq!(numbers.count(), 2, "{line:?}");
            }
        }
    });
}

#[test]
fn every_goroutine_machine_and_processor() {
    watch("schedtrace=5,scheddetail=1", |lines| {
        let mut missing = vec![
            "(chan receive) m=nil lockedm=nil",
            "(sleep) m=nil lockedm=nil",
            "status=4(park) m=nil lockedm=",
            "status=3() m=",
            "status=2() m=",
            "blocked=true lockedg=nil",
            " curg=",
            "timerslen=1",
        ];
        // Until each has been seen; a report takes what is at that moment.
        while !missing.is_empty() {
            let line = lines.next().expect("it goes on");
            let head = if line.starts_with("SCHED") { "SCHED" } else { &line[..3] };
            let names = names(&line, head);
            let expected: &[&str] = match head {
                "SCHED" => &["gcwaiting", "nmidlelocked", "stopwait", "sysmonwait"],
                "  P" => &[
                    "status",
                    "schedtick",
                    "syscalltick",
                    "m",
                    "runqsize",
                    "gfreecnt",
                    "timerslen",
                ],
                "  M" => &[
                    "p",
                    "curg",
                    "mallocing",
                    "throwing",
                    "preemptoff",
                    "locks",
                    "dying",
                    "spinning",
                    "blocked",
                    "lockedg",
                ],
                "  G" => &["status", "m", "lockedm"],
                _ => panic!("{line:?}"),
            };
            assert!(
                names.ends_with(&expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()),
                "{line:?}"
            );
            if head == "  M" {
                assert!(fields(&line, "  M").contains_key("lockedg"), "{line:?}");
            }
            missing.retain(|words| !line.contains(words));
        }
    });
}

#[test]
fn as_json() {
    watch("schedtrace=5,scheddetail=1,schedtracejson=1", |lines| {
        // The first one may come before there is a goroutine.
        let mut with_goroutines = 0;
        while with_goroutines < 3 {
            let line = lines.next().expect("it goes on");
            assert!(line.starts_with("{\"ms\":") && line.ends_with("]}"), "{line}");
            for name in ["\"gomaxprocs\":2,", "\"ps\":[{\"id\":0,", "\"ms\":[{", "\"gs\":["] {
                assert!(line.contains(name), "{name}: {line}");
            }
            let count = |c| line.matches(c).count();
            assert_eq!((count('{'), count('[')), (count('}'), count(']')), "{line}");
            assert!(!line.contains(",,") && !line.contains("[,") && !line.contains(",]"), "{line}");
            with_goroutines += usize::from(line.contains("\"gs\":[{\"id\":"));
        }
    });
}
