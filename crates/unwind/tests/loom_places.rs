//! Models of things made ahead and taken by who walks:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-unwind --release --test loom_places`.
//!
//! The production file on loom's atomics. A thing is a cell that loom watches, so that it fails when two
//! have the same one, and when one that was put back is read before what was written into it is visible.
//! Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[allow(dead_code, reason = "the module's")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[allow(dead_code, reason = "the module's")]
#[path = "../src/places.rs"]
mod places;

use explore::explore;
use loom::cell::UnsafeCell;
use loom::thread;
use places::Places;
use std::sync::Arc;

/// How often it was taken.
struct Thing(UnsafeCell<u32>);

fn make() -> Box<Thing> {
    Box::new(Thing(UnsafeCell::new(0)))
}

/// Fills and takes; how often the thing had been taken before.
fn prepare_and_take(places: &Places<Thing, 4>, count: usize) -> u32 {
    places.fill(count, make);
    let thing = places.take().expect("there are as many as takers");
    thing.0.with_mut(|word| {
        // SAFETY: who has taken it has it alone, which loom checks.
        let word = unsafe { &mut *word };
        *word += 1;
        *word - 1
    })
}

/// Two that fill and take at the same time: each finds one, whatever the other is at. Catches: `fill`
/// or `take` that take a place away from others while they only look; a Relaxed exchange in `fill`,
/// `take` or store in `drop`; a look at the first place only.
#[test]
fn each_of_two_takers_finds_one_of_two() {
    let seen = explore(3, || {
        let places = Arc::new(Places::<Thing, 4>::new());
        let other = thread::spawn({
            let places = places.clone();
            move || (prepare_and_take(&places, 2), prepare_and_take(&places, 2))
        });
        let mine = prepare_and_take(&places, 2);
        (mine, other.join().unwrap())
    });
    // Both had the first one in turn, or each one of its own.
    assert!(seen.contains(&(0, (0, 1))) && seen.contains(&(2, (0, 1))), "{seen:?}");
}

/// As many as there are, and no more.
#[test]
fn who_finds_none_is_told() {
    explore(3, || {
        let places = Places::<Thing, 4>::new();
        assert!(places.take().is_none());
        places.fill(1, make);
        let first = places.take();
        assert!(first.is_some() && places.take().is_none());
        drop(first);
        assert!(places.take().is_some());
    });
}
