use super::Bell;

/// A call, what it returns (true if nothing) and what it leaves in the word, for each state.
type Row = (&'static str, fn(&Bell) -> bool, [(bool, bool); 2]);

/// Every pair; the columns are "nobody sleeps" and "announced".
#[rustfmt::skip]
const TABLE: [Row; 3] = [
    ("announce", |b| { b.announce(); true }, [(true, true),   (true, true)]),
    ("withdraw", Bell::withdraw,             [(false, false), (true, false)]),
    ("claim",    Bell::claim,                [(false, false), (true, false)]),
];

#[test]
fn every_call_in_every_state() {
    for (name, act, outcomes) in TABLE {
        for (announced, expected) in [false, true].into_iter().zip(outcomes) {
            let bell = Bell::default();
            if announced {
                bell.announce();
            }
            assert_eq!((act(&bell), bell.is_announced()), expected, "{name} when {announced}");
        }
    }
}
