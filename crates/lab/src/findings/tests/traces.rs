//! What is said about traces.

use super::{PROMPT, ask_with, busy, cell, queue, traced};
use crate::traced::Traced;

const COST: &str = "What does it cost to take the traces";
const SHOWS: &str = "What does the trace of *";

#[test]
fn a_cheap_trace_is_called_so() {
    let cells = [busy(1, queue(1, 1))];
    let (expected, answer) = ask_with(&cells, &[traced("busy", 1)], COST);
    assert!(expected, "{answer}");
    assert!(answer.contains("10.0 ms of CPU time with a trace and 10.0 ms without (+0.0 %)"));
    assert!(answer.contains("No other number of this report was measured with a trace"));
}

#[test]
fn a_dear_trace_is_called_so() {
    let dear = Traced { cpu_ns: 15_000_000, ..traced("busy", 1) };
    let (expected, answer) = ask_with(&[busy(1, queue(1, 1))], &[dear], COST);
    assert!(!expected && answer.contains("(+50.0 %)"), "{answer}");
    assert!(answer.contains("expected to be 10 % at most, and is more"), "{answer}");
}

#[test]
fn events_ranges_and_transitions_are_named() {
    let cells = [cell("busy", 2, queue(2, 2), PROMPT)];
    let (expected, answer) = ask_with(&cells, &[traced("busy", 2)], SHOWS);
    assert!(expected, "{answer}");
    for words in [
        "`busy-2.trace` has 15 events in 1 generation",
        "P1 has 5 of them (3 GoStart, 1 GoSyscallBegin, 1 ProcStart)",
        "ran goroutines for 50.0 % of the time",
        "Threads took a P 3 times (ProcStart) and gave it up 0 times (ProcStop)",
        "as \"preempted\" 5 times",
        "1 stop of the world (GOMAXPROCS at 20.0 ms for 0.007 ms)",
        "1 GC range (collection at 20.0 ms for 0.007 ms)",
        "The probe slept 1 times in it and ran 9.50 ms late at the median",
        "of which it was 0.200 ms",
    ] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
}

#[test]
fn a_trace_without_what_it_is_for_is_noticed() {
    let calm = |variant: &str| Traced { given_up: [].into(), ..traced(variant, 1) };
    let stopped = traced("unstopped", 1);
    let two_at_once = Traced { most_running: 2, ..traced("busy", 1) };
    let mut no_calls = calm("blocks");
    no_calls.processors.clear();
    for (traced, says) in [
        (calm("busy"), "expected to be preempted, and none was"),
        (stopped, "Nobody was expected to be preempted who computes, and it happened 5 times"),
        (calm("yields"), "expected to yield, and they did 0 times"),
        (no_calls, "System calls were expected"),
        (two_at_once, "2 Ps ran at once, where 1 were expected"),
    ] {
        let (expected, answer) = ask_with(&[], &[traced], SHOWS);
        assert!(!expected && answer.contains(says), "{answer}");
    }
    let (expected, answer) = ask_with(&[], &[calm("sleeps")], SHOWS);
    assert!(expected && answer.contains("No goroutine gave up its P"), "{answer}");
}
