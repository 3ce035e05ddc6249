//! Goroutines that go before others again and again: those get their turn all the same. A child whose
//! one does not have its turn hangs.

use crate::child::Child;

#[track_caller]
fn has_its_turn(kind: &str, passes_max: u64) {
    for settings in ["tls=shared", "asyncpreemptoff=1", ""] {
        let child = Child::new("sched_starve", &[kind]).procs(1).env("GOSCHED", settings);
        let ended = child.run();
        let figures = ended.figures();
        figures.expect_some("passes");
        figures.expect_at_most("passes", passes_max);
    }
}

#[test]
fn one_without_a_stack_behind_time_outs() {
    has_its_turn("stack", u64::MAX);
}

#[test]
fn one_locked_to_a_thread_behind_time_outs() {
    has_its_turn("locked", u64::MAX);
}

#[test]
fn a_ring_behind_one_that_is_interrupted_again_and_again() {
    has_its_turn("urgent", u64::MAX);
}

#[test]
fn a_ring_behind_one_that_never_waits() {
    has_its_turn("busy", u64::MAX);
}

/// A machine that finds something whenever it polls takes what lies in another's ring all the same,
/// and does so at once. (What happens to be stolen before or between is no pass.)
#[test]
fn a_ring_behind_one_that_computes_and_the_network() {
    for settings in ["asyncpreemptoff=1", "asyncpreemptoff=1,tls=shared"] {
        let child = Child::new("sched_starve", &["network"]).procs(2).env("GOSCHED", settings);
        child.run().figures().expect_at_most("passes", 1000);
    }
}

/// Sixty turns in the ring, of which each waits for at most two of the global queue's: 61 rounds each.
#[test]
fn a_ring_behind_a_pair_and_the_global_queue() {
    has_its_turn("next", 20 * 60 * 61);
}

/// A goroutine that is woken into an empty next slot by one that goes on is taken by another processor,
/// although nobody was woken for it.
#[test]
fn one_in_a_next_slot_beside_a_lookout() {
    // The end of a slice would help.
    for settings in ["slice=off", "slice=off,tls=shared"] {
        let child = Child::new("sched_starve", &["lookout"]).procs(2).env("GOSCHED", settings);
        child.run().figures().expect_some("passes");
    }
}
