//! The ring on one thread.

use super::task::{Node, Task, ids, nodes};
use crate::{Full, HALF, List, Owner, Popped, Ring, SLOTS};

/// Where the indices of rings start, so that all of these tests see them wrap as well.
/// (With Miri one of them, which wraps.)
const STARTS: &[u32] =
    if cfg!(miri) { &[u32::MAX - 100] } else { &[0, 1, u32::MAX, u32::MAX - 100] };

/// Runs `test` with an empty ring, another one, and more nodes than fit into one.
fn check(test: impl for<'n> Fn(Owner<'_, Task<'n>>, Owner<'_, Task<'n>>, &'n [Node])) {
    let nodes = nodes(2 * SLOTS);
    for &start in STARTS {
        let (ring, other) = (Ring::starting_at(start), Ring::starting_at(!start));
        // SAFETY: the ring was just made.
        let owner = unsafe { ring.owner() };
        // SAFETY: the ring was just made.
        let other_owner = unsafe { other.owner() };
        test(owner, other_owner, &nodes);
        assert!(ring.is_empty() && other.is_empty(), "start {start}: all tokens are taken");
    }
}

/// Pushes tokens of `nodes` to the back; there has to be room.
fn fill<'n>(owner: &mut Owner<'_, Task<'n>>, nodes: &'n [Node]) {
    nodes.iter().for_each(|node| owner.push_back(Task(node)).unwrap());
}

/// The numbers from `from` up to `to`.
fn numbers(from: usize, to: usize) -> Vec<usize> {
    (from..to).collect()
}

#[test]
fn first_in_first_out() {
    check(|mut owner, _, nodes| {
        for round in 0..3 {
            fill(&mut owner, &nodes[..100 + round]);
            assert_eq!(owner.ring().len(), 100 + round);
            for id in 0..100 + round {
                assert!(matches!(owner.pop(), Some(Popped::Ring(task)) if task.0.id == id));
            }
            assert!(owner.pop().is_none());
        }
    });
}

#[test]
fn next_goes_first_and_counts() {
    check(|mut owner, _, nodes| {
        fill(&mut owner, &nodes[..1]);
        assert!(owner.push_next(Task(&nodes[1])).is_none());
        assert_eq!(owner.push_next(Task(&nodes[2])).unwrap().0.id, 1);
        assert_eq!(owner.ring().len(), 2);
        assert!(matches!(owner.pop(), Some(Popped::Next(task)) if task.0.id == 2));
        assert!(!owner.ring().is_empty());
        assert!(owner.pop_next().is_none());
        assert_eq!(owner.pop_front().unwrap().0.id, 0);
        assert!(owner.push_next(Task(&nodes[3])).is_none());
        assert!(!owner.ring().is_empty());
        assert!(owner.pop_front().is_none());
        assert_eq!(owner.pop_next().unwrap().0.id, 3);
    });
}

#[test]
fn overflow_gives_half_and_one() {
    check(|mut owner, _, nodes| {
        fill(&mut owner, &nodes[..SLOTS]);
        assert_eq!(owner.try_push_back(Task(&nodes[SLOTS])).unwrap_err().0.0.id, SLOTS);
        let overflow = owner.push_back(Task(&nodes[SLOTS])).unwrap_err();
        assert_eq!(overflow.0.len(), 129);
        assert_eq!(ids(overflow.0), [numbers(0, HALF), vec![SLOTS]].concat());
        assert_eq!(owner.room(), HALF);
        assert_eq!(ids(owner.drain()), numbers(HALF, SLOTS));
    });
}

#[test]
fn split_off_keeps_the_first_in_order() {
    check(|mut owner, _, nodes| {
        assert!(owner.split_off(0).is_empty());
        fill(&mut owner, &nodes[..SLOTS]);
        assert!(owner.push_next(Task(&nodes[SLOTS])).is_none());
        assert!(owner.split_off(SLOTS).is_empty());
        assert_eq!(ids(owner.split_off(HALF)), numbers(HALF, SLOTS));
        assert_eq!(owner.room(), HALF);
        // What stays can be put before, and after, as ever.
        let first = owner.pop_front().unwrap();
        owner.push_front(first).unwrap();
        assert_eq!(ids(owner.split_off(1)), numbers(1, HALF));
        assert_eq!(ids(owner.drain()), [SLOTS, 0]);
    });
}

#[test]
fn push_front_goes_before_the_ring_and_behind_next() {
    check(|mut owner, _, nodes| {
        owner.push_front(Task(&nodes[1])).unwrap();
        owner.push_back(Task(&nodes[2])).unwrap();
        owner.push_front(Task(&nodes[0])).unwrap();
        assert!(owner.push_next(Task(&nodes[9])).is_none());
        assert_eq!(ids(owner.drain()), [9, 0, 1, 2]);
    });
}

#[test]
fn push_front_uses_the_last_slot_and_no_more() {
    check(|mut owner, _, nodes| {
        fill(&mut owner, &nodes[1..SLOTS]);
        owner.push_front(Task(&nodes[0])).unwrap();
        let Full(back) = owner.push_front(Task(&nodes[SLOTS])).unwrap_err();
        assert_eq!(back.0.id, SLOTS);
        assert_eq!(ids(owner.drain()), numbers(0, SLOTS));
    });
}

#[test]
fn a_batch_goes_in_as_far_as_there_is_room() {
    check(|mut owner, _, nodes| {
        let mut list = List::new();
        nodes.iter().for_each(|node| list.push_back(Task(node)));
        let mut batch = list.take(usize::MAX);
        assert_eq!(owner.push_back_batch(&mut batch, 10), 10);
        assert_eq!(owner.push_back_batch(&mut batch, 0), 0);
        assert_eq!(owner.push_back_batch(&mut batch, usize::MAX), SLOTS - 10);
        assert_eq!(owner.push_back_batch(&mut batch, usize::MAX), 0);
        assert_eq!(ids(owner.drain()), numbers(0, SLOTS));
        assert_eq!(owner.push_back_batch(&mut batch, usize::MAX), SLOTS);
        assert!(batch.is_empty());
        assert_eq!(ids(owner.drain()), numbers(SLOTS, 2 * SLOTS));
    });
}

#[test]
fn half_is_stolen_rounded_up() {
    for filled in [0, 1, 2, 3, 7, 255, 256] {
        check(|mut owner, mut thief, nodes| {
            fill(&mut owner, &nodes[..filled]);
            let stolen = filled.div_ceil(2);
            let last = owner.ring().steal_half(&mut thief).map(|task| task.0.id);
            assert_eq!(last, stolen.checked_sub(1));
            assert_eq!(ids(thief.drain()), numbers(0, stolen.saturating_sub(1)));
            assert_eq!(ids(owner.drain()), numbers(stolen, filled));
        });
    }
}

#[test]
fn no_more_is_stolen_than_there_is_room_for() {
    for room in [0, 1, 5] {
        check(|mut owner, mut thief, nodes| {
            fill(&mut owner, &nodes[..100]);
            fill(&mut thief, &nodes[100..][..SLOTS - room]);
            assert_eq!(owner.ring().steal_half(&mut thief).unwrap().0.id, room);
            let expected = [numbers(100, 100 + SLOTS - room), numbers(0, room)].concat();
            assert_eq!(ids(thief.drain()), expected);
            assert_eq!(ids(owner.drain()), numbers(room + 1, 100));
        });
    }
}

#[test]
fn stealing_leaves_next_alone() {
    check(|mut owner, mut thief, nodes| {
        assert!(owner.push_next(Task(&nodes[0])).is_none());
        assert!(owner.ring().steal_half(&mut thief).is_none());
        assert_eq!(owner.pop_next().unwrap().0.id, 0);
    });
}

#[test]
fn next_is_stolen_only_if_it_stayed() {
    check(|mut owner, _, nodes| {
        let ring = owner.ring();
        assert!(ring.peek_next().is_none());
        assert!(owner.push_next(Task(&nodes[0])).is_none());
        let seen = ring.peek_next().unwrap();

        let task = owner.pop_next().unwrap();
        assert!(ring.steal_next(seen).is_none(), "it has left");
        assert!(owner.push_next(task).is_none());
        assert!(ring.steal_next(seen).is_none(), "it has been out");
        assert_eq!(owner.push_next(Task(&nodes[1])).unwrap().0.id, 0);
        assert!(ring.steal_next(seen).is_none(), "another one is there");

        let seen = ring.peek_next().unwrap();
        assert_eq!(ring.steal_next(seen).unwrap().0.id, 1);
        assert!(ring.steal_next(seen).is_none(), "it was stolen");
    });
}
