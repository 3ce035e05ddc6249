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

/// What the dice are for: orders that never come by themselves.
#[test]
fn dice_show_other_orders() {
    const ENOUGH: u64 = 10;
    let orders = |settings: &str, rounds: &str| {
        let child = Child::new("sched_chaos", &["orders", rounds]).procs(1);
        child.env("GOSCHED", settings).run()
    };
    for seed in ["1", "2"] {
        let ended = orders(&format!("slice=off,chaos={seed}"), "0");
        let figures = ended.figures();
        assert!(figures.get("orders") >= ENOUGH, "{}", ended.story());
        assert!(figures.get("broken_in") >= ENOUGH, "{}", ended.story());
    }
    let ended = orders("slice=off", "100");
    assert!(ended.figures().get("orders") < ENOUGH, "{}", ended.story());
}

/// All that the acts check holds whatever the dice say.
#[test]
fn with_dice() {
    chaos("own,chaos=7");
}
