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
