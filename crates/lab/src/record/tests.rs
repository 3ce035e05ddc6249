use super::{Measured, Task};
use crate::synthetic::{WORK, asleep, cell, in_turns, queue};

fn good() -> Measured {
    cell("busy", 1, queue(10, 1), &[])
}

/// `good` after a change, and what is wrong with it then.
fn wrong(change: impl FnOnce(&mut Measured)) -> String {
    let mut measured = good();
    change(&mut measured);
    measured.check().expect_err("it can't be true")
}

#[test]
fn what_can_be_true_passes() {
    assert_eq!(good().check(), Ok(()));
    assert_eq!(cell("yields", 2, in_turns(10, 2), &[5]).check(), Ok(()));
    assert_eq!(cell("sleeps", 2, asleep(10), &[5]).check(), Ok(()));
}

#[test]
fn what_can_not_be_true_does_not() {
    assert!(wrong(|m| m.gomaxprocs = 2).contains("2 processors instead of 1"));
    assert!(wrong(|m| m.tasks.truncate(9)).contains("9 of 10 goroutines"));
    assert!(wrong(|m| m.tasks[3].first_run_ns = u64::MAX).contains("ended before it ran"));
    assert!(wrong(|m| m.tasks[0].created_ns = 1).contains("ran before it was created"));
    assert!(wrong(|m| m.tasks[0].own_ns += 1).contains("longer than it was there"));
    assert!(wrong(|m| m.elapsed_ns -= 1).contains("after the end of the cell"));
    assert!(wrong(|m| m.tasks[0].rounds -= 1).contains("something else than the work"));
    let hasty = |m: &mut Measured| {
        let task = &mut m.tasks[1];
        *task = Task { rounds: 0, own_ns: 0, first_run_ns: task.done_ns - WORK + 1, ..*task };
    };
    assert!(wrong(hasty).contains("neither computed nor slept"));
}

#[test]
fn the_parts_of_a_time_sum_up() {
    for task in in_turns(10, 1) {
        let parts = task.created_ns + task.wait_ns() + task.own_ns + task.rest_ns();
        assert_eq!(parts, task.done_ns);
    }
}

#[test]
fn json_brings_everything_back() {
    let json = serde_json::to_string(&good()).expect("numbers are JSON");
    assert_eq!(serde_json::from_str::<Measured>(&json).expect("just written"), good());
}
