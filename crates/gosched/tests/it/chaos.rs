//! Everything at once, at random, in every mode of thread-locals. The seed is printed; each mode
//! runs for a fraction of a second here, and for as long as anyone likes by hand.

use crate::child::Child;
use std::time::{SystemTime, UNIX_EPOCH};

const ACTS: [&str; 12] = [
    "spawn_join",
    "spawn_detached",
    "yield",
    "gosched",
    "sleep",
    "park",
    "park_timeout",
    "scope",
    "panic",
    "plain_thread",
    "deep",
    "compute",
];

#[track_caller]
fn chaos(tls: &str) {
    for procs in [1, 2, 8] {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let seed = now.subsec_nanos().to_string();
        println!("tls={tls} procs={procs} seed={seed}");
        let child = Child::new("sched_chaos", &[&seed, "400"]).procs(procs);
        let ended = child.env("GOSCHED", &format!("tls={tls}")).run();
        let figures = ended.figures();
        for act in ACTS {
            figures.expect_some(act);
        }
        figures.expect_some("timers");
        // A thread for each goroutine has nobody to switch to.
        for counted in ["direct_switches", "runs_in_place"].iter().filter(|_| tls != "threads") {
            figures.expect_some(counted);
        }
        if procs == 8 {
            figures.expect_some("steals");
        }
        figures.expect("wrong_locals", 0);
    }
}

#[test]
fn with_thread_locals_of_their_own() {
    chaos("own");
}

#[test]
fn with_shared_thread_locals() {
    chaos("shared");
}

#[test]
fn on_blocks_of_dead_threads() {
    chaos("deadthread");
}

#[test]
fn where_registers_need_system_calls() {
    chaos("syscall");
}

#[test]
fn on_a_thread_for_each() {
    chaos("threads");
}
