//! Growing and measuring stacks, as users of the crate see it.

use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use gosched_fiber::stack::{self, Class, bounds, grow, maybe_grow, remaining, slot_of};

const MIB: usize = 1 << 20;

fn address_of_local() -> usize {
    let local = 0_u8;
    (&raw const local).addr()
}

/// Recurses with frames of at least a kibibyte.
#[inline(never)]
fn descend(depth: usize) -> usize {
    let frame = std::hint::black_box([depth; 128]);
    if depth == 0 { frame[0] } else { descend(depth - 1) + frame[1] / depth }
}

#[test]
fn the_closure_runs_on_a_slot_of_that_size_and_its_value_returns() {
    let text = String::from("borrowed");
    let (slot, length) = grow(2 * MIB, || (slot_of(address_of_local()), text.len()));
    let slot = slot.expect("runs on a slot");
    assert!(slot.top() - slot.limit() >= 2 * MIB);
    assert!(!slot.in_guard());
    assert_eq!(length, 8);
    assert_eq!(slot_of(address_of_local()), None, "back on the thread's own stack");
}

#[test]
fn what_overflows_a_thread_fits_on_a_grown_stack() {
    let small = thread::Builder::new().stack_size(128 << 10);
    let depth = 20_000;
    let sum = small.spawn(move || grow(60 * MIB, || descend(depth))).unwrap().join().unwrap();
    assert_eq!(sum, depth);
}

#[test]
fn growing_nests() {
    fn nest(levels: usize) -> Vec<usize> {
        if levels == 0 {
            return Vec::new();
        }
        grow(64 << 10, || {
            let mut tops = nest(levels - 1);
            tops.push(slot_of(address_of_local()).unwrap().top());
            tops
        })
    }
    let mut tops = nest(30);
    tops.sort_unstable();
    tops.dedup();
    assert_eq!(tops.len(), 30, "each level has a stack of its own");
}

#[test]
fn a_panic_is_carried_across_and_the_stack_is_given_back() {
    // No other test of this binary uses stacks of this class.
    let class = Class::for_bytes(200 * MIB).unwrap();
    let mut dropped = false;
    struct SetOnDrop<'a>(&'a mut bool);
    impl Drop for SetOnDrop<'_> {
        fn drop(&mut self) {
            *self.0 = true;
        }
    }
    let caught = catch_unwind(AssertUnwindSafe(|| {
        grow(200 * MIB, || {
            let _guard = SetOnDrop(&mut dropped);
            assert_eq!(stack::depot().stats_of(class).live, 1);
            std::panic::panic_any(41_u64);
        })
    }));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&41_u64));
    assert!(dropped, "values on the grown stack are dropped");
    assert_eq!(stack::depot().stats_of(class).live, 0);
    assert_eq!(stack::depot().stats_of(class).idle_cold, 1);
}

#[test]
fn backtraces_reach_the_caller() {
    #[inline(never)]
    fn outer_frame() -> String {
        // Used afterwards, or the compiler makes a jump of the call and the frame is gone.
        let trace = grow(MIB, inner_frame);
        std::hint::black_box(&trace);
        trace
    }
    #[inline(never)]
    fn inner_frame() -> String {
        let trace = Backtrace::force_capture();
        std::hint::black_box(&trace);
        trace.to_string()
    }
    let trace = outer_frame();
    for name in ["inner_frame", "switch_stack", "outer_frame", "backtraces_reach_the_caller"] {
        assert!(trace.contains(name), "no {name} in\n{trace}");
    }
}

#[test]
fn a_stack_of_ones_own_can_be_used_again_and_again() {
    let mut own = stack::alloc(Class::SMALL).unwrap();
    for round in 0..3 {
        let at = stack::call_on(&mut own, address_of_local);
        assert!((own.limit()..own.top()).contains(&at), "round {round}");
    }
    stack::free(own);
}

#[test]
fn maybe_grow_stays_where_there_is_room() {
    let here = thread::Builder::new().stack_size(512 << 10);
    here.spawn(|| {
        assert_eq!(maybe_grow(64 << 10, MIB, || slot_of(address_of_local())), None);
        let grown = maybe_grow(4 * MIB, 8 * MIB, || {
            // Enough is left now: no third stack.
            let outer = slot_of(address_of_local()).unwrap().top();
            let inner = maybe_grow(4 * MIB, 8 * MIB, || slot_of(address_of_local()));
            assert_eq!(inner.unwrap().top(), outer);
            outer
        });
        assert!(slot_of(grown - 1).is_some());
    })
    .unwrap()
    .join()
    .unwrap();
}

#[test]
fn remaining_knows_threads_and_slots() {
    thread::Builder::new()
        .stack_size(MIB)
        .spawn(|| {
            let left = remaining().unwrap();
            // libc may hand out a larger stack that another thread left.
            assert!((MIB / 2..256 * MIB).contains(&left), "{left}");
            let bounds = bounds().unwrap();
            assert!((bounds.limit..bounds.top).contains(&address_of_local()));
            let (limit, left) = grow(MIB, || (stack::bounds().unwrap().limit, remaining()));
            assert!(slot_of(limit).is_some());
            assert!((MIB - (16 << 10)..MIB).contains(&left.unwrap()), "{left:?}");
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
#[should_panic(expected = "no stack of")]
fn a_stack_too_large_for_any_class_panics_with_the_reason() {
    grow(usize::MAX, || ());
}
