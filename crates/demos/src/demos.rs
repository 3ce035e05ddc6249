//! The demos: one file for each.

use crate::demo::Demo;

mod deep_stack;
mod false_sharing;
mod ffi;
mod leak;
mod lock_thread;
mod maxprocs;
mod million;
mod order;
mod parallelism;
mod pipeline;
mod race;
mod starve;
mod stealing;
mod worker_pool;

/// All demos, in the order in which one may want to see them.
#[must_use]
pub fn all() -> &'static [&'static Demo] {
    &[
        &worker_pool::DEMO,
        &order::DEMO,
        &starve::DEMO,
        &ffi::DEMO,
        &maxprocs::DEMO,
        &lock_thread::DEMO,
        &stealing::DEMO,
        &parallelism::DEMO,
        &race::DEMO,
        &false_sharing::DEMO,
        &leak::DEMO,
        &deep_stack::DEMO,
        &million::DEMO,
        &pipeline::DEMO,
    ]
}

/// The demo of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Demo> {
    all().iter().copied().find(|demo| demo.name == name)
}

#[cfg(test)]
mod tests;
