//! Run queues over pointer-sized tokens: where a runnable goroutine waits for a processor.
//!
//! Layer: above `base`, below `sched`. Knows nothing of goroutines: everything is generic over a
//! [`Token`], a pointer-sized name of something runnable.
//!
//! | queue        | who puts                  | who takes           | order                   |
//! |--------------|---------------------------|---------------------|-------------------------|
//! | [`Ring`]     | the processor's owner     | its owner, thieves  | `next` first, then FIFO |
//! | [`Global`]   | anyone who may take locks | anyone who may      | FIFO                    |
//! | [`Injector`] | any thread, lock-free     | who takes it all    | FIFO                    |
//! | [`List`]     | whoever holds it          | whoever holds it    | FIFO                    |
//!
//! Invariants of the whole crate
//! * I1. A token is in at most one queue, and once in it. The callers keep this; breaking it loses
//!   or doubles tokens but is not undefined behaviour here, because every word is atomic.
//! * I2. What enters a queue leaves it once. What the one who put a token wrote before is visible
//!   to the one who takes it.
//! * I3. Nothing here allocates, blocks on anything but the leaf lock of [`Global`], or runs
//!   code of the callers while that lock is held.
//!
//! Orderings appear in `ring/`, and `injector.rs`; all other atomics are relaxed.

mod sync;
mod token;

mod list;

mod ring;

mod global;

mod injector;

pub use crate::{
    global::{BATCH_MAX, Global},
    injector::Injector,
    list::{Batch, List},
    ring::{Full, HALF, Overflow, Owner, Popped, Ring, SLOTS, Seen},
    token::{Link, Linked, Token},
};

#[cfg(all(test, not(loom)))]
mod tests;
