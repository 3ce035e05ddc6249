//! Histories of random loads keep the scheduler's promises, which the checker lists in the page of
//! `history/checker.rs` in `gosched-sched`; and when a wake is planted to be forgotten, it sees that.
//!
//! Goroutines that are stopped by signal are checked like all others: being stopped is a transition.
//! The seed draws the load, and short pauses between the records.

use crate::child::Child;
use std::collections::HashMap;

const SEEDS: u32 = if cfg!(debug_assertions) { 6 } else { 12 };

fn child(seed: u32, patience: &str) -> Child {
    let seed = seed.to_string();
    Child::planted("sched_history", &[&seed, patience]).env("GOSCHED_TEST_SEED", &seed)
}

/// What happens in any load, in sums over the seeds. Direct runs: by what was handed over, too.
const ALWAYS: [&str; 13] = [
    "created",
    "runs",
    "direct_runs",
    "parks",
    "yields",
    "calls",
    "fiber_waits",
    "searches",
    "fairness_searches",
    "found_global_first",
    "found_local",
    "found_global",
    "sleeps",
];

#[track_caller]
fn promises_are_kept(settings: &str, seeds: u32) {
    for procs in [1, 2, 3, 8] {
        let more = match procs {
            1 => &["found_ring_first", "coexisting"][..],
            _ => &["found_stolen", "coexisting", "lookouts", "rests"],
        };
        let mut sums: HashMap<String, u64> = HashMap::new();
        let never = |sums: &HashMap<String, u64>| {
            let mut names = ALWAYS.iter().chain(more);
            names.find(|name| sums.get(**name).is_none_or(|sum| *sum == 0)).copied()
        };
        // More of them where two threads hardly ever have a CPU at the same time.
        for seed in 1..=seeds * 20 {
            if seed > seeds && never(&sums).is_none() {
                break;
            }
            println!("GOSCHED={settings} GOMAXPROCS={procs} seed={seed}");
            let ended = child(seed, "250").procs(procs).env("GOSCHED", settings).run();
            let figures = ended.figures();
            figures.expect_at_most("most_running", procs as u64);
            for (name, count) in figures.all() {
                *sums.entry(name.to_owned()).or_insert(0) += count;
            }
        }
        assert_eq!(never(&sums), None, "never happened: {sums:?}");
    }
}

#[test]
fn promises_are_kept_with_preemption() {
    promises_are_kept("", SEEDS);
}

#[test]
fn promises_are_kept_without_preemption() {
    promises_are_kept("asyncpreemptoff=1", SEEDS);
}

#[test]
fn promises_are_kept_with_shared_thread_locals() {
    promises_are_kept("tls=shared", SEEDS);
}

#[test]
fn promises_are_kept_where_registers_need_system_calls() {
    promises_are_kept("tls=syscall", SEEDS);
}

/// Every goroutine is locked to a thread of its own: its processor goes from hand to hand.
#[test]
fn promises_are_kept_on_a_thread_for_each() {
    promises_are_kept("tls=threads", SEEDS / 3);
}

/// Some wakes are due only after a race that a load may not see, so as many loads try as it takes.
#[test]
fn a_forgotten_wake_is_seen() {
    const WAKES: &[&str] = &[
        "spawn", "ready", "in-turn", "yield", "gosched", "front", "commit", "timers", "injected",
        "share", "found", "put-back", "urgent",
    ];
    for wake in WAKES {
        let is_seen = (1..=1000).any(|seed| {
            let procs = 2 + seed as usize % 2;
            let plant = format!("no-wake-{wake}");
            let ended = child(seed, "250").procs(procs).env("GOSCHED_TEST_PLANT", &plant).run();
            let is_broken =
                ended.out().contains("broken: P5") || ended.out().contains("broken: P6");
            assert!(is_broken || ended.has_ended_well(), "{plant}\n{}", ended.story());
            is_broken
        });
        assert!(is_seen, "nobody saw that the wake {wake} was forgotten");
    }
}

/// Without the bell no plain thread's goroutine ever runs.
#[test]
fn a_bell_that_is_not_rung_is_seen() {
    let ended = child(1, "5").procs(2).env("GOSCHED_TEST_PLANT", "no-wake-bell").run();
    ended.expect_code(1).expect_out("broken: it hangs\n");
}
