use super::{Completed, DETACHED, DONE, EMPTY, JoinWord, LOWEST_WAITER, Registered};
use crate::forbidden::assert_aborts;
use crate::sync::AtomicUsize;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;

const WAITER: usize = LOWEST_WAITER;
const OTHER: usize = 3 * LOWEST_WAITER;

/// What a call returned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Register(Registered),
    Detach(bool),
    Complete(Completed),
    Withdraw(bool),
}

use Completed::{Detached, Unclaimed, Wake};
use Registered::{Done, Waiting};
use Said::{Complete, Detach, Register, Withdraw};

/// What a call returns and leaves in the word, or the process aborts with these words.
type Outcome = Result<(Said, usize), &'static str>;

fn number(waiter: usize) -> NonZeroUsize {
    NonZeroUsize::new(waiter).expect("not 0")
}

/// Every pair: a line for each state, with what `register`, `detach`, `complete` and `withdraw` do
/// in it.
fn table() -> [(usize, [Outcome; 4]); 4] {
    let (registered, detached, completed) = ("join: register", "join: detach", "join: complete");
    let wake = Complete(Wake(number(WAITER)));
    [
        (
            EMPTY,
            [
                Ok((Register(Waiting), OTHER)),
                Ok((Detach(false), DETACHED)),
                Ok((Complete(Unclaimed), DONE)),
                Ok((Withdraw(false), EMPTY)),
            ],
        ),
        (WAITER, [Err(registered), Err(detached), Ok((wake, DONE)), Ok((Withdraw(true), EMPTY))]),
        (
            DETACHED,
            [
                Err(registered),
                Err(detached),
                Ok((Complete(Detached), DONE)),
                Ok((Withdraw(false), DETACHED)),
            ],
        ),
        (
            DONE,
            [
                Ok((Register(Done), DONE)),
                Ok((Detach(true), DONE)),
                Err(completed),
                Ok((Withdraw(false), DONE)),
            ],
        ),
    ]
}

type Call = (&'static str, fn(&JoinWord) -> Said);

const CALLS: [Call; 4] = [
    ("register", |word| Register(word.register(number(OTHER)))),
    ("detach", |word| Detach(word.detach())),
    ("complete", |word| Complete(word.complete())),
    ("withdraw", |word| Withdraw(word.withdraw(number(WAITER)))),
];

#[test]
fn every_call_in_every_state() {
    for (from, outcomes) in table() {
        for ((name, act), outcome) in CALLS.into_iter().zip(outcomes) {
            let word = JoinWord(AtomicUsize::new(from));
            let cell = format!("{name} when {from}");
            match outcome {
                Ok((said, to)) => {
                    assert_eq!(act(&word), said, "{cell}");
                    assert_eq!(word.0.load(Relaxed), to, "{cell}");
                    assert_eq!(word.is_done(), to == DONE, "{cell}");
                    assert_eq!(word.is_detached(), to == DETACHED, "{cell}");
                }
                Err(message) => {
                    assert_aborts("join::tests::every_call_in_every_state", &cell, message, || {
                        act(&word);
                    });
                }
            }
        }
    }
}

/// Numbers that are states of the word can't be waiters.
#[test]
fn waiters_are_no_states() {
    for waiter in 1..LOWEST_WAITER {
        assert_aborts(
            "join::tests::waiters_are_no_states",
            &format!("waiter {waiter}"),
            "no waiter",
            || JoinWord::new().register(number(waiter)),
        );
    }
}

#[test]
fn a_new_word_is_neither_done_nor_detached() {
    for word in [JoinWord::new(), JoinWord::default()] {
        assert!(!word.is_done() && !word.is_detached());
    }
}
