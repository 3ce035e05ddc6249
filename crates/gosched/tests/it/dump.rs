//! Dumps of goroutines in Go's form.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::child::Child;
use gosched::thread::Builder;
use gosched::{go, runtime};

#[test]
fn states_reasons_and_places() {
    let ended = Child::new("sched_fatal", &["dump"]).procs(1).run();
    ended.expect_code(0).expect_err("");
    let shape: Vec<_> = ended.out().lines().map(|l| l.split(".rs:").next().unwrap_or(l)).collect();
    let program = "testprogs/src/bin/sched_fatal";
    let created = &*format!("created by {program}");
    let expected = [
        "goroutine 1 \"main\" [running]:",
        "gosched::runtime::dump(...)",
        "gosched/src/runtime",
        "sched_fatal::dump_with(...)",
        program,
        "sched_fatal::dump(...)",
        program,
        "sched_fatal::main_goroutine::main_goroutine(...)",
        program,
        created,
        "",
        "goroutine 2 \"sleeper\" [sleep]:",
        "sched_fatal::dump::{{closure}}(...)",
        program,
        created,
        "",
        "goroutine 3 [park]:",
        created,
        "",
    ];
    let is_like =
        |line: &str, end: &str| line == end || line.starts_with('\t') && line.ends_with(end);
    // In this order; the optimiser may leave some out that are called last, and no others.
    let (mut at, mut missing) = (0, 0);
    for end in expected {
        match shape[at..].iter().position(|line| is_like(line, end)) {
            Some(place) => at += place + 1,
            None => missing += 1,
        }
    }
    assert!(missing <= if cfg!(debug_assertions) { 0 } else { 2 }, "{}", ended.story());
    assert!(shape.len() <= expected.len(), "{}", ended.story());
}

/// Goroutines that run on another thread, were stopped where they compute, are frozen with their
/// thread, or are in a call.
#[test]
fn those_that_do_not_wait() {
    let ended = Child::new("sched_fatal", &["dump-states"]).procs(2).run();
    ended.expect_code(0);
    let figures = ended.figures();
    figures.expect("seen", 4);
    figures.expect_some("frozen");
}

/// How long it takes is printed, and means something in a release build on a quiet machine only.
#[test]
fn a_hundred_thousand() {
    let ended = Child::new("sched_fatal", &["dump-many"]).procs(2).run();
    ended.figures().expect("dumped", 100_000);
    println!("{}", ended.out());
}

#[test]
fn on_sigquit() {
    let ended = Child::new("sched_fatal", &["quit"]).procs(2).run();
    ended.expect_code(2).expect_err_parts(&[
        "SIGQUIT: quit\nPC=0x",
        " m=",
        " sigcode=",
        "\n\ngoroutine 1 \"main\" [running]:\n",
        "\nsched_fatal::main_goroutine::main_goroutine(...)\n\t",
        "testprogs/src/bin/sched_fatal.rs:",
        "\ncreated by testprogs/src/bin/sched_fatal.rs:",
        "\"locked\" [park, locked to thread]:\nsched_fatal::quit::{{closure}}(...)\n\t",
        " [park]:\ncreated by testprogs/src/bin/sched_fatal.rs:",
        " in goroutine 1\n",
    ]);
    assert_eq!(ended.err().matches("[park").count(), 4, "{}", ended.story());
    assert!(ended.out().starts_with("3 goroutines [park]:\ncreated by "), "{}", ended.story());
    for group in [
        "running",
        "chan receive",
        "chan receive (nil chan), nobody on the other side",
        "select (no cases), nobody on the other side",
    ] {
        let head = format!("\n1 goroutine [{group}]:\n");
        assert!(ended.out().contains(&head), "{group}\n{}", ended.story());
    }
}

#[test]
fn as_much_as_is_asked_for() {
    let quit = |traceback: &str| {
        let child = Child::new("sched_fatal", &["quit"]).procs(2);
        let ended = child.env("GOSCHED", &format!("traceback={traceback}")).run();
        ended.expect_code(2);
        ended.err().matches("goroutine ").count() - ended.err().matches("in goroutine ").count()
    };
    assert_eq!((quit("none"), quit("single"), quit("all")), (0, 1, 8));
    let deadlock = Child::new("sched_fatal", &["parks"]).env("GOSCHED", "traceback=none").run();
    let says = "fatal error: all goroutines are asleep - deadlock!\n\n";
    deadlock.expect_code(2).expect_err(says);
    let unknown = Child::new("sched_fatal", &["procs"]).env("GOSCHED", "traceback=some").run();
    let says = "gosched: GOSCHED: traceback=some is not understood; the default is used\n";
    unknown.expect_code(0).expect_err(says);
}

/// Goroutines end and free their names, and others take over their descriptors, while dumps read.
#[test]
fn a_dump_never_mixes_names() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let spawners: Vec<_> = (0..4_usize)
        .map(|spawner| {
            go(move || {
                for i in 0.. {
                    if STOP.load(Relaxed) {
                        return;
                    }
                    // Some without a name, some longer than a dump shows.
                    let name = format!("{:x}", i % 16).repeat(1 + (i + spawner) % 200);
                    let builder =
                        if i % 5 == 0 { Builder::new() } else { Builder::new().name(name) };
                    let ended = builder.spawn(runtime::gosched).expect("a goroutine").join();
                    ended.expect("it does not panic");
                }
            })
        })
        .collect();
    let mut named = 0;
    while named < 1000 {
        named += check_dump();
    }
    STOP.store(true, Relaxed);
    spawners.into_iter().for_each(|spawner| spawner.join().expect("it does not panic"));
}

/// Checks the first line of each paragraph; how many have a name.
fn check_dump() -> usize {
    let mut text = String::new();
    runtime::dump(&mut text).expect("a String takes everything");
    let heads = text.lines().filter(|line| line.starts_with("goroutine "));
    heads.filter(|line| is_named(line)).count()
}

fn is_named(head: &str) -> bool {
    let rest = head.strip_prefix("goroutine ").expect("checked");
    let (number, rest) = rest.split_once(' ').expect("a name or a state");
    assert!(number.parse::<u64>().is_ok_and(|n| n > 0), "{head}");
    assert!(rest.ends_with("]:") && rest.contains('['), "{head}");
    let Some(name) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) else {
        return false;
    };
    // Other tests of this process have goroutines of their own.
    let first = name.chars().next().expect("names are not empty");
    if !first.is_ascii_hexdigit() {
        return false;
    }
    assert!(name.chars().all(|c| c == first), "{head}");
    true
}
