//! Models of the places where events are written, and of who collects them:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-sched --release --test loom_trace`.
//!
//! The production files on loom's atomics and locks, with chunks for two events whose memory loom
//! watches, and fences for the barrier of which one side is free. Loom fails when two use a chunk at once,
//! or read what is not there yet; an event that is lost, comes twice, or is in another generation than
//! its section, fails an assertion. Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[allow(dead_code, reason = "the trace's")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[path = "../src/trace/lane.rs"]
mod lane;
#[allow(dead_code, unreachable_pub, reason = "the scheduler's")]
#[path = "../../protocol/src/ownership.rs"]
mod ownership;

#[allow(dead_code, unused_imports, unused_macros, reason = "other models'")]
#[path = "model/rt.rs"]
mod rt;

/// What the protocol crate stands on.
mod sync {
    pub(crate) use crate::rt::const_unless_modelled;
    pub(crate) use loom::sync::atomic::AtomicU32;
}

mod clock {
    pub(crate) fn now() -> u64 {
        0
    }
}

#[path = "model/chunk.rs"]
mod chunk;

use explore::explore;
use lane::Lane;
use loom::sync::atomic::AtomicU32;
use loom::thread;
use ownership::Ownership;
use rt::barrier;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

loom::lazy_static! {
    static ref GENERATION: AtomicU32 = AtomicU32::new(1);
}

fn overrun(_: bool) {}

/// What was written: the generation of the section, and a number.
type Event = (u64, u64);

/// Writes one event, if a trace is on; as part of it one into `texts`, which has its number and 100.
fn write(lane: &Lane, number: u64, texts: Option<&Lane>) {
    let Some(mut section) = lane.enter(0) else { return };
    let generation = section.generation;
    if let Some(mut own) = texts.and_then(|texts| texts.enter_within(&section, 0)) {
        own.put(chunk::Kind, &[generation, number + 100]);
    }
    section.put(chunk::Kind, &[generation, number]);
}

/// As the collector ends a generation: C1 to C4, and what was written in it.
fn collect(lanes: &[&Lane], generation: u32, next: u32) -> Vec<Event> {
    let before = GENERATION.compare_exchange(generation, next, SeqCst, SeqCst);
    assert_eq!(before, Ok(generation));
    barrier::heavy();
    for lane in lanes {
        lane.wait_for_writer();
        lane.flush(u64::from(generation) + 1);
    }
    take_full(generation)
}

/// What is full of that generation. Its chunks are used again.
fn take_full(generation: u32) -> Vec<Event> {
    let mut events = Vec::new();
    let mut later = Vec::new();
    while let Some(chunk) = chunk::take_full() {
        if chunk.of() > u64::from(generation) {
            later.push(chunk);
            continue;
        }
        let of = chunk.of();
        events.extend(chunk.events().into_iter().inspect(|event| assert_eq!(event.0, of)));
        chunk::give(chunk);
    }
    for chunk in later {
        chunk::put_full(chunk);
    }
    events
}

/// The last generation, when nobody writes any more.
fn rest(lanes: &[&Lane], generation: u32) -> Vec<Event> {
    lanes.iter().for_each(|lane| lane.flush(u64::MAX));
    take_full(generation)
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.1).collect()
}

/// A generation ends while somebody writes more than a chunk holds. Catches: no fence in `enter`, or none
/// before C3; `enter` or `leave` that is Relaxed; `wait_for_writer` that does not wait; `chunk_of` that
/// does not look at the mark.
#[test]
fn every_event_is_collected_once_in_the_generation_of_its_section() {
    let firsts = explore(3, || {
        let lane = Arc::new(Lane::new());
        let writes = thread::spawn({
            let lane = lane.clone();
            move || (1..=3).for_each(|number| write(&lane, number, None))
        });
        let first = collect(&[&lane], 1, 2);
        writes.join().unwrap();
        let last = rest(&[&lane], 2);
        assert!(first.iter().all(|event| event.0 == 1) && last.iter().all(|event| event.0 == 2));
        assert_eq!(numbers(&[first.clone(), last].concat()), [1, 2, 3]);
        first.len()
    });
    assert_eq!(firsts, BTreeSet::from([0, 1, 2, 3]));
}

/// What was collected is used by another lane while the first one may still have its address.
/// Catches: as above.
#[test]
fn a_chunk_that_was_collected_is_left_alone() {
    explore(2, || {
        let lanes = Arc::new([Lane::new(), Lane::new()]);
        let writes = thread::spawn({
            let lanes = lanes.clone();
            move || (1..=2).for_each(|number| write(&lanes[0], number, None))
        });
        let first = collect(&[&lanes[0], &lanes[1]], 1, 2);
        write(&lanes[1], 3, None);
        writes.join().unwrap();
        let last = rest(&[&lanes[0], &lanes[1]], 2);
        let mut all = numbers(&[first, last].concat());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// A text goes to a lane of its own, without a section of its own. Catches: as above.
#[test]
fn a_text_is_collected_with_its_event() {
    explore(2, || {
        let lanes = Arc::new([Lane::new(), Lane::new()]);
        let writes = thread::spawn({
            let lanes = lanes.clone();
            move || (1..=2).for_each(|number| write(&lanes[0], number, Some(&lanes[1])))
        });
        // As all lanes are looked at, the texts' last.
        let first = collect(&[&lanes[0], &lanes[1]], 1, 2);
        writes.join().unwrap();
        let last = rest(&[&lanes[0], &lanes[1]], 2);
        for events in [&first, &last] {
            let (mut texts, others): (Vec<u64>, Vec<u64>) =
                numbers(events).into_iter().partition(|number| *number > 100);
            texts.iter_mut().for_each(|number| *number -= 100);
            assert_eq!(texts, others);
        }
        assert_eq!(first.len() + last.len(), 4);
    });
}

/// The taker of a processor writes into the lane of the machine that has lost it, which waits for that
/// before it writes. Catches: `take_back` that is Relaxed; `wait_for_borrower` that does not wait.
#[test]
fn a_lane_that_was_lent_has_one_writer() {
    let outcomes = explore(3, || {
        let machine = Arc::new((Lane::new(), Ownership::new()));
        let takes = thread::spawn({
            let machine = machine.clone();
            move || {
                if !machine.1.request() {
                    return false;
                }
                // As the monitor does.
                machine.0.lend();
                let is_taken = machine.1.take();
                if is_taken {
                    write(&machine.0, 1, None);
                }
                machine.0.take_back();
                is_taken
            }
        });
        // As a machine enters the runtime.
        let kept = machine.1.is_undisturbed() || machine.1.keep();
        if !kept {
            machine.0.wait_for_borrower();
            machine.1.regained();
        }
        // One that it takes now sleeps in the kernel, says the look at it.
        if !kept {
            write(&machine.0, 2, None);
        }
        let is_taken = takes.join().unwrap();
        let events = numbers(&rest(&[&machine.0], 1));
        let expected: &[u64] = match (is_taken, kept) {
            (true, false) => &[1, 2],
            (true, true) => &[1],
            _ => &[],
        };
        assert_eq!(events, expected);
        (is_taken, kept)
    });
    assert!(outcomes.contains(&(true, false)) && outcomes.contains(&(false, true)), "{outcomes:?}");
}
