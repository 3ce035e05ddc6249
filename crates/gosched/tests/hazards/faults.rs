//! The system lets the program down: calls that are missing or fail, limits, signals, debuggers. It
//! goes on rightly, or ends with words that say what to do. The program is
//! `testprogs/src/bin/fault`, which uses a little of everything and knows what comes out.
//!
//! Elsewhere: thread creation that fails later and limits of threads (`blocked/threads.rs`), stops,
//! tracers, freezers and no /proc (`blocked/waits.rs`), stops amid sleeps (`calls.rs`), forks, and
//! handlers without SA_ONSTACK (`preempted`), too many files for `accept` (`net`), mappings and
//! locked memory (`stack_children` of `fiber`).

use crate::child::{Ended, run, start};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

/// Goroutines that `work::all` makes and joins.
const ALL: u64 = 86;

fn fault(arguments: &[&str]) -> Ended {
    run("", "fault", arguments)
}

#[track_caller]
fn expect_all(ended: &Ended) {
    assert_eq!(ended.number("ended"), ALL);
}

/// What newer kernels have, and what filters of containers refuse.
const CALLS: [&str; 11] = [
    "membarrier",
    "clone3",
    "epoll_pwait2",
    "prctl",
    "affinity",
    "setattr",
    "signals",
    "altstack",
    "advice",
    "guards",
    "arch_prctl",
];

#[test]
fn calls_that_are_missing_are_not_missed() {
    for call in CALLS {
        println!("without {call}");
        expect_all(&fault(&["without", call]));
    }
    expect_all(&fault(&["without", "rseq"]));
}

/// A filter is installed while goroutines run. (Without `rseq` glibc itself ends the process when
/// the next thread begins, so that one is left out.)
#[test]
fn calls_that_get_lost_are_not_missed() {
    for call in CALLS {
        println!("lost {call}");
        expect_all(&fault(&["lost", call]));
    }
}

/// The fallbacks together: registers by system calls, blocks of dead threads, an old kernel.
#[test]
fn old_kernels_and_fallbacks_at_once() {
    for settings in ["tls=own", "tls=syscall", "tls=deadthread", "tls=threads"] {
        println!("{settings}");
        expect_all(&run(settings, "fault", &["without", "old"]));
    }
}

/// libc's private functions can't be relied on: a thread for each goroutine, and a word about it.
#[test]
fn where_blocks_cannot_be_made_there_are_threads() {
    let ended = fault(&["without", "robust"]);
    expect_all(&ended);
    assert!(ended.err().contains("each goroutine gets a thread of its own"), "{}", ended.err());
}

#[test]
fn a_start_that_fails_says_what_to_do() {
    let advices = [
        ("threads", "can't create its first threads", "`ulimit -u`"),
        ("poller", "can't open epoll", "`ulimit -n`"),
        ("bell", "can't open epoll", "`ulimit -n`"),
        ("registration", "can't open epoll", "`ulimit -v`"),
    ];
    for (what, reason, advice) in advices {
        let ended = fault(&["start", what]);
        ended.expect_code(2);
        let err = ended.err();
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with("fatal error: gosched ") && last.contains(reason), "{err}");
        assert!(last.contains(advice), "{err}");
    }
}

#[test]
fn calls_that_are_interrupted_all_the_time_go_on() {
    let ended = fault(&["interrupted"]);
    assert!(ended.number("seen") >= 1_000);
    assert!(ended.number("passes") > 0);
}

/// They are not the runtime's, so they go to whoever had a handler.
#[test]
fn floods_of_the_runtimes_signal_go_to_their_handler() {
    let ended = fault(&["urgent"]);
    assert!(ended.number("seen") >= 1_000);
    assert!(ended.number("passes") > 0);
}

/// So a step of the clock that tells the time is nothing to anybody.
#[test]
fn nobody_waits_by_a_clock_that_can_be_set() {
    expect_all(&fault(&["clocks"]));
}

#[test]
fn without_a_descriptor_left_all_but_files_goes_on() {
    let ended = fault(&["full"]);
    assert_eq!(ended.number("ended"), ALL - 2);
    assert_eq!(ended.number("refused"), libc::EMFILE as u64);
    assert_eq!(ended.number("pair_refused"), libc::EMFILE as u64);
    assert_eq!(ended.number("recovered"), 1);
}

/// A process that has changed its user can't read its own /proc either, so that the threads that
/// block there can't be told apart.
#[test]
fn a_user_without_threads_left_is_served_by_those_there_are() {
    let ended = fault(&["processes"]);
    if !ended.is_skipped() {
        assert_eq!(ended.number("blocked"), 60);
        assert_eq!(ended.number("refused"), libc::EAGAIN as u64);
        expect_all(&ended);
    }
}

#[test]
fn goroutines_wait_for_memory_and_get_it() {
    let ended = fault(&["memory"]);
    assert!(ended.number("have_stacks") < 400);
    assert_eq!(ended.number("sum"), 400 * 399 / 2);
    expect_all(&ended);
}

/// Everybody waits for a stack that is not to be had: there is a word about it.
#[test]
fn who_waits_for_memory_says_so() {
    let mut child = start("", "fault", &["stackless"]);
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    err.read_line(&mut line).expect("text");
    assert!(line.contains("no stack for a goroutine") && line.contains("`ulimit -v`"), "{line}");
    // Its standard input ends.
    assert_eq!(Ended::of(child).number("answer"), 1);
}

#[test]
fn little_stack_for_threads_is_enough() {
    expect_all(&fault(&["little-stack"]));
}

#[test]
fn threads_of_c_call_in() {
    let ended = fault(&["foreign"]);
    assert_eq!(ended.number("sum"), 2 * 8 * 200);
    assert_eq!(ended.number("received"), 8 * 200);
}

#[test]
fn a_debugger_comes_and_goes() {
    let child = start("", "fault", &["attached"]);
    let reason = (0..3).find_map(|_| attach(&child).err());
    let ended = Ended::of(child);
    assert!(ended.number("passes") > 0);
    if let Some(reason) = reason {
        eprintln!("SKIPPED: {reason}");
    }
}

/// Stops every thread, looks at them, and lets them go.
fn attach(child: &Child) -> Result<(), String> {
    // `timeout` runs the program as its child.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let program = loop {
        let text = std::fs::read_to_string(&children).map_err(|_| "no list of children")?;
        if let Some(program) = text.split_whitespace().next() {
            break program.to_owned();
        }
    };
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "--readnever", "-batch", "-p", &program, "-ex", "set debuginfod enabled off"]);
    let output = gdb.args(["-ex", "thread apply all bt 3"]).output().map_err(|_| "no gdb")?;
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if err.contains("ptrace: ") {
        return Err(format!("gdb can't attach: {err}"));
    }
    assert!(out.contains("\nThread "), "{out}\n{err}");
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
