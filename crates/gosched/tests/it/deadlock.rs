//! All goroutines asleep: Go's text, a dump, exit code 2; and when it must not be said.

use crate::child::{Child, Ended};

const FATAL: &str = "sched_fatal";
const SOURCE: &str = "testprogs/src/bin/sched_fatal.rs";

/// The report, with frames and the places of the source left out.
#[track_caller]
fn expect_report(ended: &Ended, paragraphs: &[&str]) {
    ended.expect_code(2).expect_out("");
    let mut lines = ended.err().lines();
    let story = ended.story();
    assert_eq!(lines.next(), Some("fatal error: all goroutines are asleep - deadlock!"), "{story}");
    assert_eq!(lines.next(), Some(""), "{story}");
    let rest: Vec<_> = lines.collect();
    let is_frame = |i: usize| {
        let is_place = |i: usize| rest.get(i).is_some_and(|line| line.starts_with('\t'));
        is_place(i) || is_place(i + 1)
    };
    let rest: Vec<_> =
        (0..rest.len()).filter(|i| !is_frame(*i)).map(|i| without_place(rest[i])).collect();
    let (hint, rest) = rest.split_last().expect("a hint");
    assert!(hint.starts_with("gosched: nobody is left to wake any of them: look for "), "{story}");
    let expected: Vec<_> = paragraphs.iter().flat_map(|text| text.lines().chain([""])).collect();
    assert_eq!(rest, expected, "{story}");
}

/// `created by FILE:LINE:COLUMN in goroutine N` without line and column.
fn without_place(line: &str) -> String {
    let Some(place) = line.strip_prefix("created by ") else { return line.into() };
    let (file, rest) = place.split_once(':').expect("a line number");
    assert_eq!(file, SOURCE);
    let by = rest.split_once(' ').map_or(String::new(), |(_, by)| format!(" {by}"));
    format!("created by FILE{by}")
}

#[test]
fn main_parks() {
    for procs in [1, 2, 8] {
        let ended = Child::new(FATAL, &["parks"]).procs(procs).run();
        expect_report(&ended, &["goroutine 1 \"main\" [park]:\ncreated by FILE"]);
        assert!(ended.err().contains("\nsched_fatal::main_goroutine"), "{}", ended.story());
    }
}

#[test]
fn main_joins_one_that_parks() {
    let ended = Child::new(FATAL, &["joins-parked"]).procs(1).run();
    expect_report(
        &ended,
        &[
            "goroutine 1 \"main\" [join]:\ncreated by FILE",
            "goroutine 2 \"worker\" [park]:\ncreated by FILE in goroutine 1",
        ],
    );
}

#[test]
fn a_scope_waits_for_those_who_park() {
    let ended = Child::new(FATAL, &["scope-parked"]).procs(1).run();
    expect_report(
        &ended,
        &[
            "goroutine 1 \"main\" [join]:\ncreated by FILE",
            "goroutine 2 [park]:\ncreated by FILE in goroutine 1",
            "goroutine 3 [park]:\ncreated by FILE in goroutine 1",
        ],
    );
}

#[test]
fn a_plain_thread_waits_in_run() {
    for _ in 0..10 {
        let ended = Child::new(FATAL, &["run-parks"]).run();
        expect_report(&ended, &["goroutine 1 \"main\" [park]:\ncreated by FILE"]);
    }
}

#[test]
fn the_only_witness_ends() {
    let ended = Child::new(FATAL, &["foreign-ends"]).run();
    expect_report(&ended, &["goroutine 1 \"main\" [park]:\ncreated by FILE"]);
}

/// A plain thread may still wake somebody: one warning after 10 s, and the process goes on.
#[test]
fn a_plain_thread_leaves_it_open() {
    // Beside the other, since either takes its time.
    let waits = std::thread::spawn(|| Child::new(FATAL, &["plain-waits"]).run());
    let ended = Child::new(FATAL, &["foreign"]).run();
    ended.expect_code(0).expect_err_parts(&[
        "gosched: all goroutines have been asleep for 10 s; other threads of the process may still \
         wake them\n\n",
        "goroutine 1 \"main\" [park]:\n",
    ]);
    let ended = waits.join().expect("it ran");
    ended.expect_code(0).expect_err_parts(&[
        "gosched: a thread of the process has waited for 10 s, and all goroutines are asleep; ",
        "begin with #[gosched::main] or gosched::run",
        "\"worker\" [chan receive]:\n",
    ]);
}

#[test]
fn one_that_sleeps_is_no_deadlock() {
    Child::new(FATAL, &["sleeps"]).run().expect_code(0).expect_err("");
    let ended = Child::new(FATAL, &["sleeper-wakes-main"]).run();
    ended.expect_code(0).expect_err("").expect_out("woken\n");
}

#[test]
fn goroutines_left_parked_by_run_are_no_deadlock() {
    let ended = Child::new(FATAL, &["run-leaves-parked"]).run();
    ended.expect_code(0).expect_err("").expect_out("done\n");
}

#[test]
fn a_plain_thread_that_joins_is_no_deadlock() {
    let ended = Child::new(FATAL, &["plain-join"]).run();
    ended.expect_code(0).expect_err("").expect_out("no verdict\n");
}
