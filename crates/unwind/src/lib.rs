//! Stack frames: whose code called whose, from nothing but a few registers.
//!
//! Layer: `unwind`. Uses `base` and `fiber`. Knows nothing of scheduling: who has the registers of a
//! goroutine passes them in.
//!
//! * [`walk()`] finds the addresses of the frames. It may be called in a signal handler and inside the
//!   runtime: it neither allocates nor locks, and never faults, whatever the stack holds.
//! * [`prepare`] notes what is loaded in the process, for [`walk()`]; outside handlers, and again when
//!   libraries may have come or gone.
//! * [`symbols`] tells the names of addresses; it allocates, reads files and takes a lock.
//!
//! A stack that runs meanwhile gives frames that were never there together, and no more harm.

// The model takes the file that it needs, see `tests/loom_places.rs`.
#![cfg(not(loom))]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("gosched runs on x86-64 only, so far; a port begins with crates/fiber/src/arch");

mod memory;
mod modules;
mod places;
mod scratch;
pub mod symbols;
mod walk;

pub use modules::{Mapping, is_prepared, mappings, prepare};
pub use scratch::reserve;
pub use walk::{FRAMES_MAX, Frames, Registers, here, walk, walk_apart};

#[cfg(test)]
mod tests;
