//! Models of the ring:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-runq --release --test loom_ring`.
//!
//! The rings have four slots here. Each test names a change of the code that it is known to catch.
//! What no model can show is the edge `slot-reuse`: loom doesn't let a load see a store that
//! comes later. The argument for it is in `src/ring/README.md`.
#![cfg(loom)]

mod model;

use gosched_runq::{Overflow, Owner, Popped, Ring, SLOTS};
use loom::thread;

use self::model::{Task, assert_all_once, explore, run_all, task};

/// An empty ring whose indices start at `index`; leaked as tasks are.
fn ring(index: u32) -> &'static Ring<Task> {
    Box::leak(Box::new(Ring::starting_at(index)))
}

/// The task in `popped`.
fn either(popped: Popped<Task>) -> Task {
    match popped {
        Popped::Next(task) | Popped::Ring(task) => task,
    }
}

/// Pushes tasks with the numbers in `ids`; there has to be room.
fn push_all(ring: &Ring<Task>, ids: std::ops::Range<usize>) {
    // SAFETY: called by the thread that is the owner at the time.
    let mut owner = unsafe { ring.owner() };
    for id in ids {
        owner.push_back(task(id)).expect("there is room");
    }
}

/// Takes out what is left and runs it.
fn drain(ring: &Ring<Task>) -> Vec<usize> {
    // SAFETY: called when all other threads have ended.
    run_all(unsafe { ring.owner() }.drain())
}

/// Steals half of `victim` into an empty ring; returns what was taken.
fn steal(victim: &Ring<Task>) -> Vec<usize> {
    let mine = ring(0);
    // SAFETY: the ring was just made.
    let stolen = victim.steal_half(&mut unsafe { mine.owner() });
    let mut ids = run_all(stolen);
    ids.extend(drain(mine));
    ids
}

/// Catches: `Owner::publish` with a relaxed store (a stolen task is not visible);
/// `Ring::take_from` with a plain store instead of the compare-exchange (doubled).
#[test]
fn owner_against_one_thief() {
    let stolen = explore(|| owner_against_one_thief_from(0));
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), [1, 2]);
}

/// As above, where the indices wrap while the thief looks. Catches:
/// `Ring::steal_half` that computes without wrapping (nothing is stolen).
#[test]
fn owner_against_one_thief_across_the_wrap() {
    let stolen = explore(|| owner_against_one_thief_from(u32::MAX - 2));
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), [1, 2]);
}

/// Returns how many were stolen.
fn owner_against_one_thief_from(index: u32) -> usize {
    let ring = ring(index);
    push_all(ring, 0..2);
    let thief = thread::spawn(move || steal(ring));

    // SAFETY: this thread is the owner throughout.
    let mut owner = unsafe { ring.owner() };
    let mut kept = run_all(owner.pop().map(either));
    push_all(ring, 2..4);
    kept.extend(run_all(owner.pop().map(either)));

    let stolen = thief.join().unwrap();
    let count = stolen.len();
    assert_all_once(4, [kept, stolen, drain(ring)]);
    count
}

/// Catches: `Ring::take_from` with a plain store (both thieves run the same task).
#[test]
fn owner_against_two_thieves() {
    let stolen = explore(|| {
        let ring = ring(u32::MAX - 2);
        push_all(ring, 0..3);
        let thieves = [(), ()].map(|()| thread::spawn(move || steal(ring)));

        push_all(ring, 3..4);
        // SAFETY: this thread is the owner throughout.
        let kept = run_all(unsafe { ring.owner() }.pop().map(either));

        let [one, other] = thieves.map(|thief| thief.join().unwrap());
        let counts = (one.len(), other.len());
        assert_all_once(4, [kept, one, other, drain(ring)]);
        counts
    });
    // Whoever comes first finds three or four, the other one two or one.
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), [(1, 2), (2, 1)]);
}

/// A task goes through two thieves. Catches: `Owner::publish` with a relaxed store.
#[test]
fn thief_against_thief_of_the_thief() {
    let stolen_twice = explore(|| {
        let (first, second) = (ring(0), ring(0));
        push_all(first, 0..4);
        let thief = thread::spawn(move || {
            // SAFETY: this thread is the only owner of `second` until it ends.
            run_all(first.steal_half(&mut unsafe { second.owner() }))
        });
        let thief_of_thief = thread::spawn(move || steal(second));

        let parts = [thief, thief_of_thief].map(|thread| thread.join().unwrap());
        let left = [drain(first), drain(second)].concat();
        let [one, other] = parts;
        let count = other.len();
        assert_all_once(4, [one, other, left]);
        count
    });
    assert_eq!(stolen_twice.into_iter().collect::<Vec<_>>(), [0, 1]);
}

/// Catches: `Owner::push_next` with a relaxed swap (a stolen task is not visible);
/// `Owner::pop_next` that loads and then stores null (doubled).
#[test]
fn push_next_against_steal_next() {
    let stolen = explore(|| {
        let ring = ring(0);
        // SAFETY: this thread is the owner throughout.
        let mut owner = unsafe { ring.owner() };
        assert!(owner.push_next(task(0)).is_none());
        let thief = thread::spawn(move || {
            let mut stolen = Vec::new();
            for _ in 0..2 {
                let seen = ring.peek_next();
                stolen.extend(run_all(seen.and_then(|seen| ring.steal_next(seen))));
            }
            stolen
        });

        if let Some(displaced) = owner.push_next(task(1)) {
            owner.push_back(displaced).expect("there is room");
        }
        let kept = run_all(owner.pop().map(either));
        let displaced = owner.push_next(task(2));
        let displaced = run_all(displaced);

        let stolen = thief.join().unwrap();
        let outcome = stolen.clone();
        assert_all_once(3, [kept, displaced, stolen, drain(ring)]);
        outcome
    });
    let expected: [&[usize]; 6] = [&[], &[0], &[1], &[2], &[0, 1], &[0, 2]];
    assert!(expected.iter().all(|&ids| stolen.contains(ids)), "{stolen:?}");
}

/// A thief may miss that a token was out and came back, but not what its owner did with it in
/// between. Catches: `Ring::steal_next` with a relaxed compare-exchange.
#[test]
fn steal_next_of_what_came_back() {
    let stolen = explore(|| {
        let ring = ring(0);
        // SAFETY: this thread is the owner throughout.
        let mut owner = unsafe { ring.owner() };
        assert!(owner.push_next(task(0)).is_none());
        let thief =
            thread::spawn(move || run_all(ring.peek_next().and_then(|seen| ring.steal_next(seen))));

        let back = owner.pop_next();
        if let Some(task) = back {
            task.run();
            assert!(owner.push_next(task).is_none());
        }
        let stolen = thief.join().unwrap();
        let outcome = (back.is_some(), stolen.len());
        assert_all_once(1, [stolen, drain(ring)]);
        outcome
    });
    assert!(stolen.contains(&(true, 0)) && stolen.contains(&(true, 1)), "{stolen:?}");
}

/// Catches: `Owner::give_half_away` that moves the head by a plain store (doubled).
#[test]
fn overflow_against_steal() {
    let outcomes = explore(|| {
        let ring = ring(u32::MAX - 1);
        push_all(ring, 0..SLOTS);
        let thief = thread::spawn(move || steal(ring));

        // SAFETY: this thread is the owner throughout.
        let given = match unsafe { ring.owner() }.push_back(task(SLOTS)) {
            Ok(()) => Vec::new(),
            Err(Overflow(batch)) => run_all(batch),
        };
        let stolen = thief.join().unwrap();
        let counts = (given.len(), stolen.len());
        assert_all_once(SLOTS + 1, [given, stolen, drain(ring)]);
        counts
    });
    // Stolen in time; the half given away first, and half of the rest stolen.
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(0, 2), (3, 1)]);
}

/// The owner displaces one token by another and takes the other; at no time is the queue empty.
/// Catches: `Ring::is_empty` without the second look at `tail`; `Owner::pop_next` with a relaxed
/// swap.
#[test]
fn never_empty_while_a_token_is_displaced() {
    never_empty_while_displaced(false, |owner, token| owner.push_back(token).is_ok());
}

/// As above, with a displaced token that goes to the front of the ring. Catches: `Ring::is_empty`
/// that looks a second time at `tail` only.
#[test]
fn never_empty_while_a_token_is_displaced_to_the_front() {
    never_empty_while_displaced(false, |owner, token| owner.push_front(token).is_ok());
}

/// As both, in a ring that is its owner's alone. Catches: `Owner::replace_next` with a relaxed store.
#[test]
fn never_empty_while_a_lone_owner_displaces() {
    never_empty_while_displaced(true, |owner, token| owner.push_back(token).is_ok());
    never_empty_while_displaced(true, |owner, token| owner.push_front(token).is_ok());
}

fn never_empty_while_displaced(is_owners_alone: bool, put: fn(&mut Owner<'_, Task>, Task) -> bool) {
    let seen = explore(move || {
        let ring = ring(0);
        // SAFETY: nobody uses it yet, and nobody steals.
        unsafe { ring.set_owners_alone(is_owners_alone) };
        // SAFETY: this thread is the owner throughout.
        let mut owner = unsafe { ring.owner() };
        assert!(owner.push_next(task(0)).is_none());
        let observer = thread::spawn(move || {
            assert!(!ring.is_empty());
            ring.len()
        });

        let displaced = owner.push_next(task(1)).expect("nobody steals");
        assert!(put(&mut owner, displaced), "there is room");
        let kept = run_all(owner.pop_next());

        let seen = observer.join().unwrap();
        assert_all_once(2, [kept, drain(ring)]);
        seen
    });
    assert!(seen.contains(&1) && seen.contains(&2), "{seen:?}");
}

/// A ring that was its owner's alone has thieves from some time on. Catches: `Owner::is_alone` that is
/// always true (doubled), `Owner::replace_next` that keeps what was there.
#[test]
fn lone_owner_and_then_thieves() {
    let stolen = explore(|| {
        let ring = ring(0);
        // SAFETY: nobody uses it yet, and nobody steals.
        unsafe { ring.set_owners_alone(true) };
        push_all(ring, 0..3);
        // SAFETY: this thread is the owner throughout.
        let mut owner = unsafe { ring.owner() };
        assert!(owner.push_next(task(3)).is_none());
        let mut kept = run_all(owner.push_next(task(4)));
        kept.extend(run_all(owner.pop().map(either)));
        kept.extend(run_all(owner.pop().map(either)));
        owner.push_front(task(5)).expect("there is room");
        assert_eq!(kept, [3, 4, 0]);
        assert!(owner.push_next(task(6)).is_none());
        // SAFETY: no thief has come yet, and no owner's operation is under way.
        unsafe { ring.set_owners_alone(false) };
        let thief = thread::spawn(move || {
            let seen = ring.peek_next();
            let mut stolen = run_all(seen.and_then(|seen| ring.steal_next(seen)));
            stolen.extend(steal(ring));
            stolen
        });
        kept.extend(run_all(owner.pop().map(either)));
        kept.extend(run_all(owner.pop().map(either)));

        let stolen = thief.join().unwrap();
        let outcome = stolen.clone();
        assert_all_once(7, [kept, stolen, drain(ring)]);
        outcome
    });
    assert!(stolen.len() > 3, "{stolen:?}");
}

/// The head goes forward and back under the eyes of a thief. Catches: `Head::retreat` that leaves
/// the count alone (what was popped is stolen too, what was put in front is lost);
/// `Owner::move_head` with a relaxed compare-exchange (what was put in front is not visible).
#[test]
fn push_front_against_steal() {
    let stolen = explore(|| push_front_against_steal_from(1));
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), STOLEN_WITH_FRONTS);
}

/// As above, where the first step backwards leads from 0 to `u32::MAX`.
#[test]
fn push_front_against_steal_across_the_wrap() {
    let stolen = explore(|| push_front_against_steal_from(0));
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), STOLEN_WITH_FRONTS);
}

/// What a thief gets of 0, 1, then 1, then 2, 1, then 3, 2, 1.
const STOLEN_WITH_FRONTS: [&[usize]; 4] = [&[0], &[1], &[2], &[2, 3]];

/// Returns what was stolen.
fn push_front_against_steal_from(index: u32) -> Vec<usize> {
    let ring = ring(index);
    push_all(ring, 0..2);
    let thief = thread::spawn(move || steal(ring));

    // SAFETY: this thread is the owner throughout.
    let mut owner = unsafe { ring.owner() };
    let kept = run_all(owner.pop().map(either));
    owner.push_front(task(2)).expect("there is room");
    owner.push_front(task(3)).expect("there is room");

    let stolen = thief.join().unwrap();
    let outcome = stolen.clone();
    assert_all_once(4, [kept, stolen, drain(ring)]);
    outcome
}

/// Catches: `Owner::drain` that moves the head by a plain store (doubled).
#[test]
fn drain_against_steal() {
    let stolen = explore(|| {
        let ring = ring(u32::MAX);
        push_all(ring, 0..3);
        // SAFETY: this thread is the owner throughout.
        let mut owner = unsafe { ring.owner() };
        assert!(owner.push_next(task(3)).is_none());
        let thief = thread::spawn(move || {
            let next = ring.peek_next().and_then(|seen| ring.steal_next(seen));
            [run_all(next), steal(ring)].concat()
        });

        let drained = run_all(owner.drain());
        let stolen = thief.join().unwrap();
        let count = stolen.len();
        assert_all_once(4, [drained, stolen, drain(ring)]);
        count
    });
    assert_eq!(stolen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

/// Catches: `Owner::split_off` that moves the head by a plain store (doubled), or fills the slots
/// again before it was moved (a thief runs one twice).
#[test]
fn split_off_against_steal() {
    let outcomes = explore(|| {
        let ring = ring(u32::MAX);
        push_all(ring, 0..SLOTS);
        let thief = thread::spawn(move || [steal(ring), steal(ring)].concat());

        // SAFETY: this thread is the owner throughout.
        let taken = run_all(unsafe { ring.owner() }.split_off(1));
        let stolen = thief.join().unwrap();
        let outcome = (taken.len(), stolen.len());
        assert_all_once(SLOTS, [taken, stolen, drain(ring)]);
        outcome
    });
    // Nobody came, before, and after.
    let expected = [(3, 0), (0, 3), (1, 2), (3, 1)];
    assert!(expected.iter().all(|outcome| outcomes.contains(outcome)), "{outcomes:?}");
}
