//! The first walks of a process.

use gosched_unwind::{Frames, here, prepare};
use std::process::Command;
use std::sync::Barrier;
use std::{env, thread};

/// Set in the children.
const CHILD: &str = "GOSCHED_TEST_FIRST_WALKS";

/// Nobody is without a table or memory because somebody else makes them: two threads at a time, as
/// `prepare` has memory for two, and one chance a process.
#[test]
fn all_who_have_prepared_can_walk() {
    if env::var_os(CHILD).is_some() {
        return walk_at_once();
    }
    for _ in 0..100 {
        let mut child = Command::new(env::current_exe().expect("known"));
        child.args(["--exact", "all_who_have_prepared_can_walk"]).env(CHILD, "1");
        let output = child.output().expect("the child starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

fn walk_at_once() {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                ready.wait();
                prepare();
                assert!(here(&mut Frames::new()));
            });
        }
    });
}
