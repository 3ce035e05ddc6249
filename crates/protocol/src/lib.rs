//! The scheduler's state words, each a type of its own.
//!
//! Layer: `protocol`. Uses `base`. A word with more than one party and its transitions live here,
//! without the goroutines and threads around it, so that loom can run the production type.
//!
//! * [`StatusWord`]: where a goroutine is.
//! * [`Permit`]: the token of `park` and `unpark`.
//! * [`JoinWord`]: who waits for a goroutine's result, and whether it is there.
//! * [`Ownership`]: whether a machine still owns its processor.
//! * [`Searchers`]: how many machines look for work, and when one more is woken.
//! * [`Bell`]: one sleeper that anyone may claim.
//! * [`Lookout`]: one sleeper that looks again soon, so that nobody is woken meanwhile.
//! * [`AlarmWord`]: when an alarm is due, and in which heap it stands.
//! * [`Readiness`]: whether a descriptor is ready in one direction, and who waits for it.
//!
//! A call that its word's invariants forbid aborts where the check is free. Unit tests list every
//! pair of state and call; the models in `tests/loom_*.rs` run the words among several threads. The
//! proof of the idle protocol is in `README.md`.

mod alarm;
mod bell;
mod join;
mod lookout;
mod ownership;
mod permit;
mod readiness;
mod searchers;
mod status;
mod sync;

pub use alarm::{AlarmWord, Check, Heaps, LockedHeap, Settled};
pub use bell::Bell;
pub use join::{Completed, JoinWord, Registered};
pub use lookout::Lookout;
pub use ownership::Ownership;
pub use permit::{Permit, PermitTaken};
pub use readiness::Readiness;
pub use searchers::Searchers;
pub use status::{Status, StatusWord};

#[cfg(all(test, not(loom)))]
mod forbidden;
