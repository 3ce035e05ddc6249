//! Tests of starting, watching and ending a command.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Ended, Shown, Task};

fn shell(script: &str, limit: Duration) -> (Ended, Vec<String>) {
    let mut lines = Vec::new();
    let task = Task { grace: Duration::from_secs(1), ..Task::new("sh").args(["-c", script]) };
    let ended = task
        .run(Path::new("/"), Instant::now() + limit, |line| {
            lines.push(line.to_owned());
            Shown::No
        })
        .expect("sh starts");
    (ended, lines)
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn output_and_errors_come_in_order() {
    let (ended, lines) = shell("echo one; echo two >&2; printf three; exit 3", LONG);
    assert_eq!(lines, ["one", "two", "three"]);
    assert!(matches!(ended, Ended::Exited(status) if status.code() == Some(3)), "{ended:?}");
}

#[test]
fn a_hang_ends_at_the_deadline() {
    let (ended, _) = shell("echo start; sleep 1000 & sleep 1000", Duration::from_millis(300));
    assert!(matches!(ended, Ended::TimedOut), "{ended:?}");
}

#[test]
fn a_hang_with_endless_output_ends_too() {
    let (ended, _) = shell("while sleep 0.05; do echo; done", Duration::from_millis(300));
    assert!(matches!(ended, Ended::TimedOut), "{ended:?}");
}

#[test]
fn a_hang_with_closed_output_ends_too() {
    let (ended, _) = shell("exec >&- 2>&-; sleep 1000", Duration::from_millis(300));
    assert!(matches!(ended, Ended::TimedOut), "{ended:?}");
}

#[test]
fn processes_left_behind_are_found_and_ended() {
    let (ended, _) = shell("sleep 1000 & echo gone", LONG);
    assert!(matches!(ended, Ended::LeftProcesses(1)), "{ended:?}");
    let (ended, _) = shell("sleep 1000 >/dev/null 2>&1 & echo gone", LONG);
    assert!(matches!(ended, Ended::LeftProcesses(1)), "{ended:?}");
}

#[test]
fn shown_as_typed() {
    let task = Task::new("/somewhere/bin/cargo").args(["test", "a b"]).variable("R", "--cfg loom");
    assert_eq!(task.shown(), "R='--cfg loom' cargo test 'a b'");
}
