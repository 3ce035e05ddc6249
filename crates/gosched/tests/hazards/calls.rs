//! System calls.

use crate::child::run;

/// Calls without a time-out show no EINTR. poll, epoll_wait, select, nanosleep and futexes with a
/// time-out may, as signal(7) says of every handler; what they never do is to end early.
#[test]
fn calls_beside_hogs_are_not_interrupted() {
    let ended = run("", "hazard_calls", &[]);
    assert_eq!(ended.number("interrupted"), 0);
    assert_eq!(ended.number("early"), 0);
    let passes = ended.number("passes");
    assert_eq!(ended.number("calls"), 3_000 * passes);
    assert_eq!(ended.number("timed"), 750 * passes);
    assert!(ended.number("preemptions") > 300);
    assert!(ended.number("undeclared_hand_offs") > 0);
}

/// A restarted sleep's rest is known to the kernel's thread alone.
#[test]
fn no_sleep_ends_early_while_the_process_is_stopped_and_continued() {
    let ended = run("", "hazard_restart", &[]);
    assert_eq!(ended.number("early"), 0);
    assert!(ended.number("stops") > 1_000);
    let sleeps = ended.number("sleeps");
    assert!(sleeps >= 300);
    assert_eq!(ended.number("to_the_end") + ended.number("interrupted"), sleeps);
    assert!(ended.number("undeclared_hand_offs") > 0);
}
