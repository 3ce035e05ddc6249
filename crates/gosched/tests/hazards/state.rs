//! State of the CPU, and of the kernel's threads.

use crate::child::{Ended, run};

fn hazard(kind: &str) -> Ended {
    run("", "hazard_state", &[kind])
}

/// All vector and mask registers, x87, rounding modes, EFLAGS, the red zone.
#[test]
fn every_register_outlives_preemption() {
    let ended = hazard("registers");
    assert_eq!(ended.number("wrong"), 0);
    assert!(ended.number("preemptions") >= 300);
}

/// Without alternate stacks the kernel's frames lie right below the code that they have interrupted, and
/// what is left for the trampoline must not be written into them.
#[test]
fn so_does_every_register_where_handlers_have_no_stack_of_their_own() {
    let ended = hazard("one-stack");
    assert_eq!(ended.number("wrong"), 0);
    assert!(ended.number("preemptions") >= 300);
}

/// With EFLAGS.AC set the CPU refuses unaligned accesses, the runtime's own among them.
#[test]
fn alignment_checks_stay_with_who_wants_them() {
    let ended = hazard("alignment");
    assert_eq!(ended.number("wrong"), 0);
    assert!(ended.number("preemptions") >= 300);
}

/// A full x87 stack of a stopped goroutine made 1 + 1 no number in the next one.
#[test]
fn nothing_of_a_stopped_goroutine_is_seen_by_the_next() {
    let ended = hazard("initial");
    assert_eq!(ended.number("dirty"), 0);
    assert!(ended.number("looks") > 0);
    assert!(ended.number("preemptions") >= 300);
}

/// Resumed on another thread, a handler would have swapped masks and alternate stacks.
#[test]
fn a_handler_ends_on_the_thread_where_it_began() {
    let ended = hazard("handlers");
    assert_eq!(ended.number("moved"), 0);
    assert!(ended.number("runs") >= 300);
    assert!(ended.number("refused") > 0, "no slice ended in a handler");
    assert!(ended.number("preemptions") > 0);
    expect_threads_in_order(&ended);
}

/// Such a handler blocks no signal of its own accord, so that it looks like any other code.
#[test]
fn so_does_one_that_blocks_nothing() {
    let ended = hazard("handlers-nodefer");
    assert_eq!(ended.number("moved"), 0);
    assert!(ended.number("runs") >= 300);
    assert!(ended.number("preemptions") > 0);
    expect_threads_in_order(&ended);
}

fn expect_threads_in_order(ended: &Ended) {
    assert_eq!(ended.number("shared_stacks"), 0);
    assert_eq!(ended.number("other_masks"), 0);
    assert!(ended.number("threads") > 1);
}

#[test]
fn protection_keys_are_the_goroutines() {
    let ended = hazard("pkru");
    if !ended.is_skipped() {
        assert_eq!(ended.number("wrong"), 0);
        assert_eq!(ended.number("leaked"), 0);
    }
}
