//! Unwinding, and the unwinder's view of the stack.

use crate::pulse;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{catch_unwind, panic_any, resume_unwind};
use testprogs::random::Random;

/// What acts throw: not a check that failed.
pub(crate) struct Thrown(u64);

/// Counts its drops.
struct Counted<'a>(&'a mut u64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
        pulse::compute(1, 1);
    }
}

/// Panics at the bottom of a recursion.
fn descend(depth: u64, dropped: &mut u64, value: u64) {
    let counted = Counted(dropped);
    match depth {
        0 if value.is_multiple_of(2) => panic_any(Thrown(value)),
        0 => resume_unwind(Box::new(Thrown(value))),
        _ => descend(depth - 1, counted.0, value),
    }
}

/// A panic that is caught.
pub(crate) fn caught(random: &mut Random) {
    for _ in 0..random.below(6) {
        let (depth, value, mut dropped) = (random.below(20), random.bits(), 0);
        let thrown = catch_unwind(std::panic::AssertUnwindSafe(|| {
            descend(depth, &mut dropped, value);
        }));
        let thrown = thrown.expect_err("it panics").downcast::<Thrown>();
        assert!(thrown.is_ok_and(|thrown| thrown.0 == value));
        assert_eq!(dropped, depth + 1);
    }
}

/// A backtrace, with symbols: milliseconds in callbacks of the loader's.
pub(crate) fn backtrace(random: &mut Random) {
    if random.below(8) == 0 {
        let trace = Backtrace::force_capture();
        assert_eq!(trace.status(), BacktraceStatus::Captured);
        let text = trace.to_string();
        assert!(text.contains("torture::unwind::backtrace"), "{text}");
    }
}
