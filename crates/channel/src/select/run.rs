//! How a select waits.
//!
//! The channels are looked at in random order, each one locked before, and the locks are kept until
//! one is ready, which is chosen. If none was, all are locked: a node goes into each queue, the select
//! is suspended, and only then are the locks let go. Whoever finds one of the nodes and wins the race
//! tells the select what it is; the select takes its other nodes out of their queues.
//!
//! A lock that is taken out of the order of locks is only tried. If another one has it the other cases
//! are looked at. If none of them is ready it is tried a few times more, and if that fails all are let
//! go, and taken in the order of their addresses. (With a fixed order of cases at once, since the
//! locked one might come first.)
//!
//! Invariant
//! * I1. The commit, which lets go of the locks, may still be at it when a waker of the first
//!   unlocked channel resumes the select. The last thing it does with the cases is to let go of the
//!   last lock, so the select takes that one first.
//!
//! Rejected: locking one channel after the other, as crossbeam-channel does. A `default` is then
//! taken although at every moment some case was ready. Locking all before the first look, as Go:
//! most selects find something at the first or second look.

use super::case::Case;
use super::{SelectedOperation, Token};
use crate::clock::wait_for_nobody;
use crate::core::{Guard, Patience, State};
use crate::node::{NodeRef, Outcome, Race};
use crate::profile;
use crate::queue::{Queue, Wakes};
use crate::rt::{Critical, WaitReason, pause, random};
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
    let mut since = None;
    loop {
        let mut look = Look { since, goal, is_biased, wakes: Wakes::new() };
        let critical = Critical::enter();
        let ready = match look.poll_and_lock(cases) {
            Ok(ready) => ready,
            Err(Contended) => {
                lock_all(cases, is_biased);
                look.poll_all(cases)
            }
        };
        since = look.since;
        if ready.is_some() || patience.is_over() {
            unlock_all(cases);
            look.wakes.wake(&critical);
            return ready;
        }
        match profile::timed(WaitReason::Select, || wait(critical, cases, patience, goal)) {
            Wait::Chosen(place, token) => return Some((place, token)),
            Wait::LookAgain => {}
            Wait::Over => patience = Patience::None,
        }
    }
}

/// The order in which cases are looked at: a random one, or that in which they were added.
struct Order {
    is_random: bool,
    /// What is left of a random number.
    bits: u64,
}

impl Order {
    fn new(is_biased: bool) -> Order {
        Order { is_random: !is_biased, bits: 0 }
    }

    /// The place of the case that is `nth` in the order: a step of Fisher and Yates' shuffle, which
    /// makes a random order of any other one.
    #[inline]
    fn place(&mut self, cases: &mut [Case<'_>], nth: usize) -> usize {
        /// How many numbers below 2^16 one random number is good for.
        const DRAWS: usize = 4;
        if !self.is_random {
            return nth;
        }
        if nth + 1 < cases.len() {
            if nth.is_multiple_of(DRAWS) {
                self.bits = random();
            }
            // Taken as a fraction, it has so many parts, and what is left is one again.
            let product = u128::from(self.bits) * (cases.len() - nth) as u128;
            self.bits = product as u64;
            let other = nth + (product >> 64) as usize;
            (cases[nth].shuffled, cases[other].shuffled) =
                (cases[other].shuffled, cases[nth].shuffled);
        }
        cases[nth].shuffled
    }
}

/// Somebody else has one of the locks.
struct Contended;

/// A look at all cases.
struct Look {
    /// When the wait began, once a clock has been looked at.
    since: Option<Instant>,
    goal: Goal,
    is_biased: bool,
    /// Whose messages were moved; to be woken once the locks are free.
    wakes: Wakes,
}

impl Look {
    /// The first case that is ready, and what it is told. If it is none, all cases are locked then.
    fn poll_and_lock(
        &mut self,
        cases: &mut [Case<'_>],
    ) -> Result<Option<(usize, Token)>, Contended> {
        let mut order = Order::new(self.is_biased);
        let mut is_contended = false;
        for nth in 0..cases.len() {
            let place = order.place(cases, nth);
            let case = &mut cases[place];
            if let Some(core) = case.core {
                let Some(guard) = core.try_lock() else {
                    // Another case of the same channel may have it, too.
                    if self.is_biased {
                        unlock_all(cases);
                        return Err(Contended);
                    }
                    is_contended = true;
                    continue;
                };
                let is_idle = guard.is_idle(case.side) && case.clock.is_none();
                case.hold(guard);
                // As `poll` would find, for less.
                if is_idle && self.goal == Goal::Operate {
                    continue;
                }
            }
            if let Some(token) = self.poll(case) {
                return Ok(Some((place, token)));
            }
        }
        if is_contended { self.poll_the_rest(cases) } else { Ok(None) }
    }

    /// Tries the locks that another one had once more, while all others are held, and looks at their
    /// cases. The order is random.
    #[cold]
    fn poll_the_rest(
        &mut self,
        cases: &mut [Case<'_>],
    ) -> Result<Option<(usize, Token)>, Contended> {
        for nth in 0..cases.len() {
            let place = cases[nth].shuffled;
            if cases[place].core.is_none() || cases[place].has_guard() {
                continue;
            }
            if !lock_late(cases, place) {
                unlock_all(cases);
                return Err(Contended);
            }
            if let Some(token) = self.poll(&cases[place]) {
                return Ok(Some((place, token)));
            }
        }
        Ok(None)
    }

    /// As [`poll_and_lock`](Look::poll_and_lock), with all locks held.
    #[cold]
    fn poll_all(&mut self, cases: &mut [Case<'_>]) -> Option<(usize, Token)> {
        let mut order = Order::new(self.is_biased);
        (0..cases.len()).find_map(|nth| {
            let place = order.place(cases, nth);
            Some((place, self.poll(&cases[place])?))
        })
    }

    /// What it is told if it is ready.
    fn poll(&mut self, case: &Case<'_>) -> Option<Token> {
        let side = case.side;
        match (self.goal, case.clock) {
            (Goal::Operate, None) => case.with_state(|state| {
                if state.is_idle(side) {
                    return None;
                }
                // SAFETY: the lock is held; a slot of a case is a place for its message.
                unsafe { case.endpoint.promise(state, case.node.slot(), &mut self.wakes) }
            })?,
            (Goal::Operate, Some(clock)) => {
                clock.poll(*self.since.get_or_insert_with(Instant::now)).map(Token::Instant)
            }
            (Goal::Watch, None) => {
                case.with_state(|state| state.is_ready(side))?.then_some(Token::Closed)
            }
            (Goal::Watch, Some(clock)) => clock.is_due().then_some(Token::Closed),
        }
    }
}

/// How often a lock is tried that another one has, while all others are held. Most are free by the
/// first time, since the other cases were looked at in between; a holder that was stopped is waited
/// for without holding the others.
const TRIES: u32 = if cfg!(loom) { 1 } else { 4 };
/// Pauses between two tries.
const PAUSES: u32 = 4;

/// Locks the channel of the case there, out of the order of locks: only by trying. False if another
/// one keeps the lock.
fn lock_late(cases: &mut [Case<'_>], place: usize) -> bool {
    let order = cases[place].lock_order();
    if let Some(holder) = cases.iter().find(|case| case.has_guard() && case.lock_order() == order) {
        cases[place].state = holder.state;
        return true;
    }
    let case = &mut cases[place];
    let Some(core) = case.core else { return true };
    for _ in 0..TRIES {
        if let Some(guard) = core.try_lock() {
            case.hold(guard);
            return true;
        }
        for _ in 0..PAUSES {
            pause();
        }
    }
    false
}

/// Locks every channel.
#[cold]
fn lock_all(cases: &mut [Case<'_>], is_biased: bool) {
    cases.sort_unstable_by_key(Case::lock_order);
    for place in 0..cases.len() {
        let (before, from_here) = cases.split_at_mut(place);
        let case = &mut from_here[0];
        let Some(core) = case.core else { continue };
        case.state = match before.last() {
            Some(last) if last.lock_order() == case.lock_order() => last.state,
            _ => {
                case.hold(core.lock());
                case.state
            }
        };
    }
    if is_biased {
        cases.sort_unstable_by_key(|case| case.index);
    }
}

fn unlock_all(cases: &[Case<'_>]) {
    for case in cases {
        drop(case.guard.take());
    }
}

impl<'a> Case<'a> {
    #[inline]
    fn hold(&mut self, mut guard: Guard<'a>) {
        self.state = &mut *guard;
        self.guard.set(Some(guard));
    }

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

/// Waits in every queue, with all locks held on the way in.
fn wait(critical: Critical, cases: &[Case<'_>], patience: Patience, goal: Goal) -> Wait {
    let race = Race::new(true);
    let (mut last_unlocked, mut due) = (None, None);
    for (place, case) in cases.iter().enumerate() {
        if case.has_guard() {
            last_unlocked = Some(place);
        }
        if let Some(clock) = case.clock {
            due = [due, clock.due()].into_iter().flatten().min();
        }
        case.with_state(|state| {
            case.node.enter(&race);
            // SAFETY: the node stays until it was claimed, or `leave_queues` has taken it out.
            case.queue(state, goal).push(unsafe { NodeRef::new(&case.node) });
            if goal == Goal::Operate {
                state.wake_watchers_of_waiter(case.side, &critical);
            }
        });
    }
    // I1: not a look at the cases behind that one, which may be in use again by then.
    let unlocked = &cases[..last_unlocked.map_or(0, |place| place + 1)];
    let commit = |waiter| {
        race.set_waiter(waiter);
        unlock_all(unlocked);
        true
    };
    let critical = match patience.until(due).deadline() {
        None => critical.block_and_stay(WaitReason::Select, commit),
        Some(deadline) => {
            critical.block_until(WaitReason::Select, deadline, commit, || race.expire());
            Critical::enter()
        }
    };
    let winner = leave_queues(cases, last_unlocked, &race, goal);
    drop(critical);
    let is_clocks = due.is_some_and(|due| patience.deadline().is_none_or(|end| due < end));
    if race.is_expired() && !is_clocks {
        return Wait::Over;
    }
    outcome(cases, winner, goal)
}

/// The place of the case whose node was claimed, if one was. Within a [`Critical`].
fn leave_queues(
    cases: &[Case<'_>],
    last_unlocked: Option<usize>,
    race: &Race,
    goal: Goal,
) -> Option<usize> {
    let last_unlocked = last_unlocked?;
    leave_queue(&cases[last_unlocked], goal);
    let mut winner = None;
    for (place, case) in cases.iter().enumerate() {
        if race.was_won_by(&case.node) {
            // Its waker has taken it out.
            winner = Some(place);
        } else if place != last_unlocked {
            leave_queue(case, goal);
        }
    }
    winner
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

fn outcome(cases: &[Case<'_>], winner: Option<usize>, goal: Goal) -> Wait {
    // If there is none, a clock's time has come.
    let Some(place) = winner else { return Wait::LookAgain };
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
