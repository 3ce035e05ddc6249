//! Many goroutines that only compute share the processors.

use crate::child::run;

/// A piece of work of 50 ms is five slices. No thread blocks, but when a page is slow.
#[test]
fn all_are_stopped_and_nearly_all_move() {
    let ended = run("", "hazard_hogs", &["100"]);
    assert!(ended.number("stopped_min") >= 3);
    assert!(ended.number("moved_percent") >= 80);
    assert!(ended.number("machines") < 16 + ended.number("undeclared_hand_offs"));
    assert!(ended.number("preemptions") >= 300);
}

/// With the ring given away at each few refusals some had eight turns before others had one.
#[test]
fn those_that_allocate_take_turns() {
    let ended = run("", "hazard_hogs", &["64", "alloc"]);
    assert!(ended.number("in_libc") >= 50, "nothing was tried again");
    assert!(ended.number("preemptions") >= 300);
    assert!(ended.number("turns_min") >= 6);
    assert!(ended.number("turns_max") <= 3 * ended.number("turns_min"));
}
