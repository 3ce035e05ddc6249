use super::{NONE, READY, Readiness};
use crate::forbidden::assert_aborts;
use crate::sync::AtomicUsize;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;

const WAITER: usize = 0x1000;

/// What a call returns and leaves in the word, or the process aborts.
type Outcome = Option<(bool, usize)>;
const ABORTS: Outcome = None;

const fn ok(value: bool, word: usize) -> Outcome {
    Some((value, word))
}

/// A call and what it does in each state.
type Row = (&'static str, fn(&Readiness) -> bool, [Outcome; 3]);

/// Every pair: a line for each call; the columns are NONE, READY, a waiter.
#[rustfmt::skip]
const TABLE: [Row; 4] = [
    ("take",       Readiness::take, [ok(false, NONE), ok(true, NONE), ABORTS]),
    ("wait",       wait, [ok(true, WAITER), ok(false, NONE), ABORTS]),
    ("make_ready", make_ready, [ok(false, READY), ok(false, READY), ok(true, READY)]),
    ("time_out",   Readiness::time_out, [ok(false, NONE), ok(false, READY), ok(true, NONE)]),
];

fn wait(readiness: &Readiness) -> bool {
    readiness.wait(NonZeroUsize::new(WAITER).unwrap())
}

fn make_ready(readiness: &Readiness) -> bool {
    let waiter = readiness.make_ready();
    assert!(waiter.is_none_or(|waiter| waiter.get() == WAITER));
    waiter.is_some()
}

#[test]
fn every_call_in_every_state() {
    for (name, act, outcomes) in TABLE {
        for (from, outcome) in [NONE, READY, WAITER].into_iter().zip(outcomes) {
            let readiness = Readiness(AtomicUsize::new(from));
            let cell = format!("{name} when {from}");
            match outcome {
                Some((returned, to)) => {
                    assert_eq!(act(&readiness), returned, "{cell}");
                    assert_eq!(readiness.0.load(Relaxed), to, "{cell}");
                }
                None => assert_aborts(
                    "readiness::tests::every_call_in_every_state",
                    &cell,
                    &format!("readiness: {name} while another waits"),
                    || act(&readiness),
                ),
            }
        }
    }
}

#[test]
fn a_new_one_knows_nothing() {
    assert!(!Readiness::new().take());
    assert!(!Readiness::default().take());
}
