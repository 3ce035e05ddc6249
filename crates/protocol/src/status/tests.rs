use super::{Status, StatusWord};
use crate::forbidden::assert_aborts;
use crate::sync::AtomicU8;
use Status::{Dead, Idle, Runnable, Running, Syscall, Waiting};

/// What a transition does to a status: the next one, or the process aborts.
type Outcome = Option<Status>;
const ABORTS: Outcome = None;

const fn to(status: Status) -> Outcome {
    Some(status)
}

/// A transition and what it does to each status.
type Row = (&'static str, fn(&StatusWord), [Outcome; 6]);

const FROM: [Status; 6] = [Idle, Runnable, Running, Syscall, Waiting, Dead];

/// Every pair: a line for each transition, a column for each status in the order of `FROM`.
#[rustfmt::skip]
const TABLE: [Row; 8] = [
    ("created", StatusWord::created, [ABORTS, ABORTS, ABORTS, ABORTS, ABORTS, to(Runnable)]),
    ("run", StatusWord::run, [ABORTS, to(Running), ABORTS, ABORTS, ABORTS, ABORTS]),
    ("yielded", StatusWord::yielded, [ABORTS, ABORTS, to(Runnable), ABORTS, ABORTS, ABORTS]),
    ("park", StatusWord::park, [ABORTS, ABORTS, to(Waiting), ABORTS, ABORTS, ABORTS]),
    ("ready", StatusWord::ready, [ABORTS, ABORTS, ABORTS, ABORTS, to(Runnable), ABORTS]),
    ("enter_call", StatusWord::enter_call, [ABORTS, ABORTS, to(Syscall), ABORTS, ABORTS, ABORTS]),
    ("exit_call", StatusWord::exit_call, [ABORTS, ABORTS, ABORTS, to(Running), ABORTS, ABORTS]),
    ("exit", StatusWord::exit, [ABORTS, ABORTS, to(Dead), ABORTS, ABORTS, ABORTS]),
];

#[test]
fn every_transition_from_every_status() {
    for (name, act, outcomes) in TABLE {
        for (from, outcome) in FROM.into_iter().zip(outcomes) {
            let word = StatusWord(AtomicU8::new(from as u8));
            let cell = format!("{name} when {from:?}");
            match outcome {
                Some(to) => {
                    act(&word);
                    assert_eq!(word.get(), to, "{cell}");
                }
                None => assert_aborts(
                    "status::tests::every_transition_from_every_status",
                    &cell,
                    &format!("found {from:?}"),
                    || act(&word),
                ),
            }
        }
    }
}

#[test]
fn a_new_word_is_dead() {
    assert_eq!(StatusWord::new().get(), Dead);
    assert_eq!(StatusWord::default().get(), Dead);
}

/// Numbers and names are Go's.
#[test]
fn numbers_and_names() {
    let names = ["idle", "runnable", "running", "syscall", "waiting", "dead"];
    for ((status, number), name) in FROM.into_iter().zip([0, 1, 2, 3, 4, 6]).zip(names) {
        assert_eq!(status as u8, number);
        assert_eq!(Status::from_number(number), status);
        assert_eq!(status.as_str(), name);
    }
}
