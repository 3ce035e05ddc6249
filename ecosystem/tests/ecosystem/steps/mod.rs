//! The steps, by subject.

mod crates;
mod libc_calls;
mod libraries;
mod stack_depth;
mod system;
mod threads;
mod unwinding;

use crate::step::Step;

/// All lists of steps, in order.
pub(crate) const ALL: &[&[Step]] = &[
    threads::STEPS,
    system::STEPS,
    libc_calls::STEPS,
    unwinding::STEPS,
    libraries::STEPS,
    crates::STEPS,
    stack_depth::STEPS,
];
