//! How a select waits.
//!
//! All channels are locked, in the order of their addresses, and looked at in random order. If one
//! is ready it is chosen. Otherwise a node goes into each queue, the select is suspended, and only
//! then are the locks let go. Whoever finds one of the nodes and wins the race tells the select what
//! it is; the select takes its other nodes out of their queues.
//!
//! Invariant
//! * I1. The commit, which lets go of the locks, may still be at it when a waker of the first
//!   unlocked channel resumes the select. The last thing it does with the cases is to let go of the
//!   last lock, so the select takes that one first.
//!
//! Rejected: locking one channel after the other, as crossbeam-channel does. A `default` is then
//! taken although at every moment some case was ready.

use super::case::Case;
use super::{SelectedOperation, Token};
use crate::clock::wait_for_nobody;
use crate::core::{Patience, State};
use crate::node::{NodeRef, Outcome, Race};
use crate::profile;
use crate::queue::Queue;
use crate::rt::{Critical, WaitReason, random};
use std::time::Instant;

/// What is to be found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// An operation to do.
    Operate,
    /// One that is ready, without doing it.
    Watch,
}

/// How a wait ended.
enum Wait {
    Chosen(usize, Token),
    LookAgain,
    /// The patience's end came: one look more.
    Over,
}

pub(super) fn select_endless<'a>(cases: &mut [Case<'a>], is_biased: bool) -> SelectedOperation<'a> {
    loop {
        if let Some(operation) = select(cases, Patience::Endless, is_biased) {
            return operation;
        }
    }
}

pub(super) fn select<'a>(
    cases: &mut [Case<'a>],
    patience: Patience,
    is_biased: bool,
) -> Option<SelectedOperation<'a>> {
    let (place, token) = run(cases, patience, is_biased, Goal::Operate)?;
    let case = &cases[place];
    Some(SelectedOperation::new(token, case.index, case.endpoint))
}

/// The place of a case that reached the goal; `None` if the patience ended.
pub(super) fn run(
    cases: &mut [Case<'_>],
    mut patience: Patience,
    is_biased: bool,
    goal: Goal,
) -> Option<(usize, Token)> {
    if cases.is_empty() {
        wait_for_nobody(WaitReason::SelectNoCases, patience);
        return None;
    }
    let since = cases.iter().any(|case| case.endpoint.clock().is_some()).then(Instant::now);
    loop {
        set_ranks(cases, is_biased);
        let critical = Critical::enter();
        lock_all(cases);
        let ready = poll_all(cases, since, goal);
        if ready.is_some() || patience.is_over() {
            unlock_all(cases);
            return ready;
        }
        match profile::timed(WaitReason::Select, || wait(critical, cases, patience, goal)) {
            Wait::Chosen(place, token) => return Some((place, token)),
            Wait::LookAgain => {}
            Wait::Over => patience = Patience::None,
        }
    }
}

fn set_ranks(cases: &mut [Case<'_>], is_biased: bool) {
    for case in cases {
        case.rank = if is_biased { case.index as u64 } else { random() };
    }
}

/// Locks every channel, and puts the cases into the order in which they are looked at.
fn lock_all(cases: &mut [Case<'_>]) {
    cases.sort_unstable_by_key(Case::lock_order);
    for place in 0..cases.len() {
        let (before, from_here) = cases.split_at_mut(place);
        let case = &mut from_here[0];
        let Some(core) = case.core else { continue };
        case.state = match before.last() {
            Some(last) if last.lock_order() == case.lock_order() => last.state,
            _ => {
                let mut guard = core.lock();
                let state: *mut State = &mut *guard;
                case.guard.set(Some(guard));
                state
            }
        };
    }
    cases.sort_unstable_by_key(|case| case.rank);
}

fn unlock_all(cases: &[Case<'_>]) {
    for case in cases {
        drop(case.guard.take());
    }
}

impl Case<'_> {
    /// Uses what the channel's lock guards, between `lock_all` and `unlock_all`.
    fn with_state<R>(&self, f: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.core?;
        // SAFETY: the lock is held, and `f` has no way to another case's state.
        Some(f(unsafe { &mut *self.state }))
    }

    fn queue<'s>(&self, state: &'s mut State, goal: Goal) -> &'s mut Queue {
        match goal {
            Goal::Operate => state.queue(self.side),
            Goal::Watch => state.watchers(self.side),
        }
    }
}

/// What it is told if it is ready.
fn poll(case: &Case<'_>, since: Option<Instant>, goal: Goal) -> Option<Token> {
    let side = case.side;
    match (goal, case.endpoint.clock()) {
        (Goal::Operate, None) => case.with_state(|state| state.promise(side))?,
        (Goal::Operate, Some(clock)) => clock.poll(since?).map(Token::Instant),
        (Goal::Watch, None) => {
            case.with_state(|state| state.is_ready(side))?.then_some(Token::Closed)
        }
        (Goal::Watch, Some(clock)) => clock.is_due().then_some(Token::Closed),
    }
}

/// The first case, in the order of ranks, that is ready.
fn poll_all(cases: &[Case<'_>], since: Option<Instant>, goal: Goal) -> Option<(usize, Token)> {
    let mut places = cases.iter().enumerate();
    places.find_map(|(place, case)| Some((place, poll(case, since, goal)?)))
}

/// Waits in every queue, with all locks held on the way in.
fn wait(critical: Critical, cases: &[Case<'_>], patience: Patience, goal: Goal) -> Wait {
    let race = Race::new(true);
    for case in cases {
        case.with_state(|state| {
            case.node.enter(&race);
            // SAFETY: the node stays until it was claimed, or `leave_queues` has taken it out.
            case.queue(state, goal).push(unsafe { NodeRef::new(&case.node) });
            if goal == Goal::Operate {
                state.wake_watchers_of_waiter(case.side, &critical);
            }
        });
    }
    let last_unlocked = cases.iter().rposition(Case::has_guard);
    let due = cases.iter().filter_map(|case| case.endpoint.clock()?.due()).min();
    // I1: not a look at the cases behind that one, which may be in use again by then.
    let unlocked = &cases[..last_unlocked.map_or(0, |place| place + 1)];
    let commit = |waiter| {
        race.set_waiter(waiter);
        unlock_all(unlocked);
        true
    };
    match patience.until(due).deadline() {
        None => critical.block(WaitReason::Select, commit),
        Some(deadline) => {
            critical.block_until(WaitReason::Select, deadline, commit, || race.expire());
        }
    }
    leave_queues(cases, last_unlocked, &race, goal);
    let is_clocks = due.is_some_and(|due| patience.deadline().is_none_or(|end| due < end));
    if race.is_expired() && !is_clocks {
        return Wait::Over;
    }
    outcome(cases, &race, goal)
}

fn leave_queues(cases: &[Case<'_>], last_unlocked: Option<usize>, race: &Race, goal: Goal) {
    let Some(last_unlocked) = last_unlocked else { return };
    let _critical = Critical::enter();
    leave_queue(&cases[last_unlocked], goal);
    for (place, case) in cases.iter().enumerate() {
        // Its waker has taken the winner out.
        if place != last_unlocked && !race.was_won_by(&case.node) {
            leave_queue(case, goal);
        }
    }
}

fn leave_queue(case: &Case<'_>, goal: Goal) {
    let Some(core) = case.core else { return };
    let mut state = core.lock();
    if case.node.is_queued.get() {
        // SAFETY: it is in the queue, and the lock is held.
        let node = unsafe { NodeRef::new(&case.node) };
        case.queue(&mut state, goal).remove(node);
    }
}

fn outcome(cases: &[Case<'_>], race: &Race, goal: Goal) -> Wait {
    let Some(place) = cases.iter().position(|case| race.was_won_by(&case.node)) else {
        // A clock's time has come.
        return Wait::LookAgain;
    };
    let node = &cases[place].node;
    match (node.outcome(), goal) {
        (Outcome::Retry, _) => Wait::LookAgain,
        (_, Goal::Watch) | (Outcome::Closed, _) => Wait::Chosen(place, Token::Closed),
        (Outcome::Promised, _) => Wait::Chosen(place, Token::Promised),
        (Outcome::Partner(partner), _) => Wait::Chosen(place, Token::Partner(partner)),
        (Outcome::Done, _) => match node.slot() {
            Some(slot) => Wait::Chosen(place, Token::Delivered(slot)),
            None => Wait::LookAgain,
        },
        (Outcome::Waiting, _) => Wait::LookAgain,
    }
}
