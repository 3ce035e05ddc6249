use super::Searchers;
use crate::forbidden::assert_aborts;
use crate::sync::AtomicU32;

fn searching(count: u32) -> Searchers {
    Searchers { count: AtomicU32::new(count) }
}

/// What a call returns and how many search after it, or the process aborts.
type Outcome = Option<(bool, u32)>;
const ABORTS: Outcome = None;

/// It returns `value` and `count` search after it.
const fn ok(value: bool, count: u32) -> Outcome {
    Some((value, count))
}

/// A call and what it does when 0, 1, 2 search. Calls without a result count as true.
type Row = (&'static str, fn(&Searchers) -> bool, [Outcome; 3]);

/// Every pair of call and state.
#[rustfmt::skip]
const TABLE: [Row; 9] = [
    ("summon", Searchers::summon, [ok(true, 1), ok(false, 1), ok(false, 2)]),
    ("call_off", |s| { s.call_off(); true }, [ABORTS, ok(true, 0), ok(true, 1)]),
    ("join, 0 busy", |s| s.join(0), [ok(false, 0), ok(false, 1), ok(false, 2)]),
    ("join, 1 busy", |s| s.join(1), [ok(true, 1), ok(false, 1), ok(false, 2)]),
    ("join, 3 busy", |s| s.join(3), [ok(true, 1), ok(true, 2), ok(false, 2)]),
    ("join_for_sure", |s| { s.join_for_sure(); true }, [ok(true, 1), ok(true, 2), ok(true, 3)]),
    ("found", Searchers::found, [ABORTS, ok(true, 0), ok(false, 1)]),
    ("give_up", |s| { s.give_up(); true }, [ABORTS, ok(true, 0), ok(true, 1)]),
    ("sit_out", |s| { s.sit_out(); true }, [ok(true, 0), ok(true, 1), ok(true, 2)]),
];

#[test]
fn every_call_in_every_state() {
    for (name, act, outcomes) in TABLE {
        for (from, outcome) in (0..).zip(outcomes) {
            let searchers = searching(from);
            let cell = format!("{name} when {from} search");
            match outcome {
                Some(expected) => {
                    assert_eq!((act(&searchers), searchers.count()), expected, "{cell}");
                }
                None => assert_aborts(
                    "searchers::tests::every_call_in_every_state",
                    &cell,
                    "searchers: one less than none",
                    || act(&searchers),
                ),
            }
        }
    }
}

#[test]
fn at_first_nobody_searches() {
    assert_eq!(Searchers::new().count(), 0);
    assert_eq!(Searchers::default().count(), 0);
}
