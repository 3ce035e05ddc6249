//! Waits leave no memory behind.

use crate::child::Child;

/// Pages that come and go; a million of the smallest allocations would be 16 MiB.
const SLACK_BYTES: u64 = 3 << 20;

fn grows(what: &str, n: &str) -> u64 {
    let ended = Child::new("time_flat", &[what, n]).procs(2).run();
    ended.expect_code(0);
    let figures: Vec<u64> = ended.out().lines().map(|n| n.parse().expect("a number")).collect();
    let [before, after] = figures[..] else { panic!("{}", ended.story()) };
    after.saturating_sub(before)
}

#[test]
fn a_million_selects_with_a_timeout_of_an_hour() {
    for what in ["select", "select-timer", "select-default"] {
        let bytes = grows(what, "1000000");
        assert!(bytes < SLACK_BYTES, "{what}: {bytes} bytes more");
    }
}

#[test]
fn a_million_alarms_that_are_stopped() {
    let bytes = grows("after-func", "1000000");
    assert!(bytes < SLACK_BYTES, "{bytes} bytes more");
}
