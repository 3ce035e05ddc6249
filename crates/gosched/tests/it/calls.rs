//! Machines give their processors away by themselves where calls last, and only there.

use crate::child::Child;

#[test]
fn calls_that_last_hand_on_at_once_and_short_ones_do_not() {
    for settings in ["", "tls=shared", "chaos=7"] {
        let child = Child::new("sched_calls", &[]).procs(1).env("GOSCHED", settings);
        let ended = child.run();
        let figures = ended.figures();
        let calls = figures.get("calls");
        // Each of them but for those few that the monitor took, and those after which nobody waited.
        figures.expect_at_least("handed_off", calls * 3 / 4);
        figures.expect_at_least("long", calls / 2);
        // The first one; another one for each time that the kernel stops the thread in a call.
        figures.expect_at_most("short", calls / 2);
    }
}
