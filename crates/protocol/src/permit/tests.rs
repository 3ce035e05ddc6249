use super::{EMPTY, NOTIFIED, PARKED, Permit, PermitTaken};
use crate::forbidden::assert_aborts;
use crate::sync::AtomicU8;
use PermitTaken::Yes;
use std::sync::atomic::Ordering::Relaxed;

/// What a call returns and leaves in the word, or the process aborts.
type Outcome = Option<(bool, u8)>;
const ABORTS: Outcome = None;

/// It returns `value` and leaves `word`.
const fn ok(value: bool, word: u8) -> Outcome {
    Some((value, word))
}

/// A call and what it does in each state.
type Row = (&'static str, fn(&Permit) -> bool, [Outcome; 3]);

/// Every pair: a line for each call; the columns are EMPTY, NOTIFIED, PARKED.
#[rustfmt::skip]
const TABLE: [Row; 4] = [
    ("take",     |p| p.take() == Yes, [ok(false, EMPTY), ok(true, EMPTY), ABORTS]),
    ("park",     |p| p.park() == Yes, [ok(false, PARKED), ok(true, EMPTY), ABORTS]),
    ("unpark",   Permit::unpark, [ok(false, NOTIFIED), ok(false, NOTIFIED), ok(true, NOTIFIED)]),
    ("time_out", Permit::time_out, [ok(false, EMPTY), ok(false, NOTIFIED), ok(true, EMPTY)]),
];

#[test]
fn every_call_in_every_state() {
    for (name, act, outcomes) in TABLE {
        for (from, outcome) in [EMPTY, NOTIFIED, PARKED].into_iter().zip(outcomes) {
            let permit = Permit(AtomicU8::new(from));
            let cell = format!("{name} when {from}");
            match outcome {
                Some((returned, to)) => {
                    assert_eq!(act(&permit), returned, "{cell}");
                    assert_eq!(permit.0.load(Relaxed), to, "{cell}");
                }
                None => assert_aborts(
                    "permit::tests::every_call_in_every_state",
                    &cell,
                    &format!("permit: {name} by an owner that waits"),
                    || act(&permit),
                ),
            }
        }
    }
}

#[test]
fn a_new_permit_has_no_token() {
    assert_eq!(Permit::new().take(), PermitTaken::No);
    assert_eq!(Permit::default().take(), PermitTaken::No);
}
