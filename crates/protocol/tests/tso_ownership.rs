//! Every interleaving of a machine with a store buffer (x86's memory model) and its revoker, by the
//! steps that the page of `ownership` names.
//!
//! loom knows no store buffers that a sleep empties, so the words are modelled here. Bad states: the
//! machine inside the runtime believes it owns a processor that was handed on, the processor is
//! handed on twice, or it is lost to both.

#![cfg(not(loom))]

use std::collections::{HashSet, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Word {
    Own,
    Requested,
    Call,
    Lost,
}

/// What is in memory, as the revoker sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Memory {
    word: Word,
    in_runtime: bool,
    leaves: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Store {
    InRuntime(bool),
    Leaves(u8),
}

/// Where the machine is: between which of its steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Outside,
    Asleep,
    /// After E1.
    Entering,
    /// After E3 found a request or a loss.
    Settling,
    Inside,
    /// Asleep inside, in a lock of the runtime's.
    AsleepInside,
    /// After L1.
    Leaving,
    /// In a declared call; the flag is down once the store buffer is empty.
    InCall,
    /// Back from a declared call, inside.
    EndingCall,
    /// Inside, without a processor.
    Without,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Revoker {
    /// Has not looked, or has come to an end and starts again.
    Idle,
    /// Saw the machine outside with this count.
    Seen(u8),
    /// After R1.
    Requested(u8),
    /// After R2: seen asleep.
    SeenAsleep(u8),
    /// After R3: nothing has changed.
    Unchanged,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    memory: Memory,
    buffer: VecDeque<Store>,
    at: At,
    revoker: Revoker,
    /// Whether the processor was handed on and the machine has no other one yet.
    handed_on: bool,
    leaves_left: u8,
}

#[derive(Clone, Copy, Default)]
struct Variant {
    /// The revoker does not look whether the machine sleeps after its request.
    forgets_to_look: bool,
}

impl State {
    fn first() -> State {
        State {
            memory: Memory { word: Word::Own, in_runtime: false, leaves: 0 },
            buffer: VecDeque::new(),
            at: At::Outside,
            revoker: Revoker::Idle,
            handed_on: false,
            leaves_left: 3,
        }
    }

    /// The count as the machine itself sees it: its own stores first.
    fn own_leaves(&self) -> u8 {
        let buffered = self.buffer.iter().rev().find_map(|store| match store {
            Store::Leaves(n) => Some(*n),
            Store::InRuntime(_) => None,
        });
        buffered.unwrap_or(self.memory.leaves)
    }

    fn with(&self, change: impl FnOnce(&mut State)) -> State {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    /// A locked instruction or a sleep: the buffer is empty afterwards.
    fn drained(&self, change: impl FnOnce(&mut State)) -> State {
        self.with(|s| {
            while let Some(store) = s.buffer.pop_front() {
                s.apply(store);
            }
            change(s);
        })
    }

    fn apply(&mut self, store: Store) {
        match store {
            Store::InRuntime(flag) => self.memory.in_runtime = flag,
            Store::Leaves(n) => self.memory.leaves = n,
        }
    }

    /// Everything that can happen next.
    fn successors(&self, variant: Variant) -> Vec<State> {
        let mut next = Vec::new();
        if let Some(store) = self.buffer.front().copied() {
            next.push(self.with(|s| {
                s.buffer.pop_front();
                s.apply(store);
            }));
        }
        self.machine_steps(&mut next);
        self.revoker_steps(variant, &mut next);
        next
    }

    fn machine_steps(&self, next: &mut Vec<State>) {
        let enter = |s: &mut State| {
            s.buffer.push_back(Store::InRuntime(true));
            s.at = At::Entering;
        };
        match self.at {
            At::Outside => {
                next.push(self.drained(|s| s.at = At::Asleep));
                next.push(self.with(enter));
            }
            At::Asleep => next.push(self.with(|s| s.at = At::Outside)),
            At::Entering if self.memory.word == Word::Own => {
                next.push(self.with(|s| s.at = At::Inside));
            }
            At::Entering => next.push(self.with(|s| s.at = At::Settling)),
            // `keep`, a locked instruction.
            At::Settling => next.push(self.drained(|s| match s.memory.word {
                Word::Requested | Word::Own => {
                    s.memory.word = Word::Own;
                    s.at = At::Inside;
                }
                _ => s.at = At::Without,
            })),
            At::Inside => {
                next.push(self.drained(|s| s.at = At::AsleepInside));
                if self.leaves_left > 0 {
                    let leaves = self.own_leaves() + 1;
                    next.push(self.with(|s| {
                        s.leaves_left -= 1;
                        s.buffer.push_back(Store::Leaves(leaves));
                        s.at = At::Leaving;
                    }));
                    // `begin_call`: against a request the machine keeps the processor first.
                    next.push(self.drained(|s| {
                        s.leaves_left -= 1;
                        s.memory.word = Word::Call;
                        s.buffer.push_back(Store::Leaves(leaves));
                        s.buffer.push_back(Store::InRuntime(false));
                        s.at = At::InCall;
                    }));
                }
            }
            At::AsleepInside => next.push(self.with(|s| s.at = At::Inside)),
            At::Leaving => next.push(self.with(|s| {
                s.buffer.push_back(Store::InRuntime(false));
                s.at = At::Outside;
            })),
            At::InCall => next.push(self.with(|s| {
                s.buffer.push_back(Store::InRuntime(true));
                s.at = At::EndingCall;
            })),
            At::EndingCall => next.push(self.drained(|s| {
                if s.memory.word == Word::Call {
                    s.memory.word = Word::Own;
                    s.at = At::Inside;
                } else {
                    s.at = At::Without;
                }
            })),
            // Another processor, or the same one after somebody has given it back.
            At::Without => next.push(self.with(|s| {
                s.memory.word = Word::Own;
                s.handed_on = false;
                s.at = At::Inside;
            })),
        }
    }

    fn revoker_steps(&self, variant: Variant, next: &mut Vec<State>) {
        let memory = self.memory;
        let give_up = |s: &mut State| {
            if s.memory.word == Word::Requested {
                s.memory.word = Word::Own;
            }
            s.revoker = Revoker::Idle;
        };
        match self.revoker {
            Revoker::Idle if memory.word == Word::Call => next.push(self.with(|s| {
                s.memory.word = Word::Lost;
                s.hand_on();
            })),
            Revoker::Idle if !memory.in_runtime => {
                next.push(self.with(|s| s.revoker = Revoker::Seen(memory.leaves)));
            }
            Revoker::Idle => {}
            Revoker::Seen(leaves) if memory.word == Word::Own => next.push(self.with(|s| {
                s.memory.word = Word::Requested;
                s.revoker = Revoker::Requested(leaves);
            })),
            Revoker::Seen(_) => next.push(self.with(|s| s.revoker = Revoker::Idle)),
            Revoker::Requested(leaves) => {
                let asleep = matches!(self.at, At::Asleep | At::AsleepInside);
                if asleep || variant.forgets_to_look {
                    next.push(self.with(|s| s.revoker = Revoker::SeenAsleep(leaves)));
                } else {
                    next.push(self.with(give_up));
                }
            }
            Revoker::SeenAsleep(leaves) => {
                if !memory.in_runtime && memory.leaves == leaves {
                    next.push(self.with(|s| s.revoker = Revoker::Unchanged));
                } else {
                    next.push(self.with(give_up));
                }
            }
            Revoker::Unchanged if memory.word == Word::Requested => next.push(self.with(|s| {
                s.memory.word = Word::Lost;
                s.revoker = Revoker::Idle;
                s.hand_on();
            })),
            Revoker::Unchanged => next.push(self.with(|s| s.revoker = Revoker::Idle)),
        }
    }

    fn hand_on(&mut self) {
        assert!(!self.handed_on, "handed on twice");
        self.handed_on = true;
    }

    /// Whether the machine uses a processor that somebody else has.
    fn is_bad(&self) -> bool {
        self.handed_on && matches!(self.at, At::Inside | At::AsleepInside | At::Leaving)
            || (!self.handed_on && self.at == At::Without)
    }
}

/// How many states there are, and a bad one if there is any.
fn explore(variant: Variant) -> (usize, Option<State>) {
    let mut seen = HashSet::from([State::first()]);
    let mut open = vec![State::first()];
    while let Some(state) = open.pop() {
        if state.is_bad() {
            return (seen.len(), Some(state));
        }
        for next in state.successors(variant) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen.len(), None)
}

#[test]
fn no_interleaving_is_bad() {
    let (states, bad) = explore(Variant::default());
    assert_eq!(bad, None);
    assert!(states > 500, "only {states} states: the model does not move");
}

/// The model sees what the steps are for.
#[test]
fn without_the_look_after_the_request_there_are_bad_ones() {
    let (_, bad) = explore(Variant { forgets_to_look: true });
    assert!(bad.is_some());
}
