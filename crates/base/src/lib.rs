//! The lowest layer: what every other crate of gosched stands on.
//!
//! Layer: `base`. Uses nothing of gosched. Everything here may be called inside the runtime:
//! nothing allocates, formats, panics on a hot path, or takes a lock that outside code can hold.
//!
//! * [`os`]: system calls made directly, without libc's `errno` or its cancellation points.
//! * [`barrier`]: a full barrier of which one side is free.
//! * [`Lock`]: the runtime's leaf lock, on a futex.
//! * [`Parker`]: one thread sleeps, anyone wakes it, once.
//! * [`CachePadded`]: keeps neighbours off each other's cache lines.
//! * [`Rng`]: a small generator for victims and poll orders.
//! * [`prefetch()`]: fetches a cache line before it is needed.
//! * [`Stride`]: guesses where a walk through a list will come to.
//! * [`rt_abort!`]: the last resort when an invariant of ours broke.

pub mod barrier;
pub mod os;

mod abort;
mod lock;
mod padded;
mod parker;
mod prefetch;
mod rng;
mod rt;
mod stride;

pub use abort::{Stderr, abort_with, set_abort_hook};
pub use lock::{Lock, LockGuard};
pub use padded::CachePadded;
pub use parker::Parker;
pub use prefetch::prefetch;
pub use rng::Rng;
pub use stride::Stride;
