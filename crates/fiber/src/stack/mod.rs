//! Stacks: big reservations of address space, cut into guarded slots that are reused hot.
//!
//! Layer: `fiber`, lowest part. Uses `libc` only. It knows nothing of goroutines; the layer above
//! keeps its control block at the top of each slot.
//!
//! A slot, and its neighbours:
//!
//! ```text
//!   low                                                                            high
//!   | guard | usable ............ <- grows down, TOP | guard | usable ......... TOP | ...
//!   base    limit                                  top = base of the next slot
//! ```
//!
//! Invariants
//! * I1. A slot is in exactly one place: a `Stack` handle, a row of one `Cache`, one list of its
//!   `Pool`, or above its pool's frontier (never used).
//! * I2. Arenas are never unmapped and their descriptors never change: an address that once lay in
//!   a slot always lies in that slot. So `slot_of` needs no lock and may run in a signal handler.
//! * I3. What is known of an idle slot is kept beside the arena, never in the slot's own pages, so
//!   that those pages can be given back.
//! * I4. Nothing here calls malloc, blocks on a lock that outside code can hold, formats or
//!   panics, except `grow`, `maybe_grow` and `remaining`, which are for user code.
//!
//! Page tables decide the slots' strides. A page of page table maps 2 MiB, so a parked stack with
//! one touched page costs 0.25 KiB of table at a stride of 128 KiB, 0.5 KiB at 256 KiB and 0.625
//! KiB at 320 KiB. Hence the default slot is 256 KiB *with* its guard (in a debug build 512 KiB).
//!
//! Rejected
//! * One mapping a stack: `vm.max_map_count` ends that at 32,000 stacks.
//! * Free lists threaded through the stacks themselves: the pages could never be given back.
//! * Unmapping empty arenas: lookups would need hazard pointers to save only address space.

mod ahead;
mod arena;
mod bitmap;
mod bounds;
mod cache;
mod class;
mod depot;
mod error;
mod grow;
mod guard;
mod lock;
mod pool;
mod shrink;
mod slot;
pub(crate) mod sys;

pub(crate) use self::ahead::Ahead;
pub use self::arena::{SlotInfo, is_in_slot, slot_of};
pub use self::bounds::{Bounds, bounds, remaining};
pub use self::cache::Cache;
pub use self::class::Class;
pub(crate) use self::depot::alloc_present;
pub use self::depot::{Depot, Stats, alloc, choose_guard, depot, free, release_pages, stats, trim};
pub use self::error::StackError;
pub use self::grow::{before_switch, call_on, grow, maybe_grow};
pub use self::guard::GuardKind;
pub use self::shrink::{release_below, resident_below};
pub use self::slot::Stack;

#[cfg(test)]
mod tests;
