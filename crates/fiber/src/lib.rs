//! The ground floor of gosched: a stack, a thread-local block, and the switch between them.
//!
//! Layer: `fiber`. Uses `base`. Knows nothing of scheduling.
//!
//! * [`stack`]: guarded slots of address space that grow by being touched.
//! * [`arch`]: the context switch and the thread registers, one file a CPU.
//! * [`host`]: the thread that carries, and how code finds it.
//! * [`tls`]: a thread-local block of one's own.
//! * [`fault`]: overflows told from other faults.
//! * [`thread`]: threads of the runtime's own.
//! * [`Fiber`]: a stack and a block together.
//! * [`pool`]: fibers made ahead, and given back, by a helper thread.
//! * [`doctor()`]: what this machine offers.
//! * [`Coroutine`]: the smallest thing that runs on a fiber; for tests, benches and `doctor`.

#![cfg_attr(not(target_env = "gnu"), allow(dead_code, reason = "what serves blocks"))]

pub mod arch;
pub mod fault;
pub mod host;
pub mod pool;
pub mod stack;
pub mod thread;
pub mod tls;

mod coroutine;
mod doctor;
mod fiber;
mod sanitizer;
mod signals;

pub use coroutine::{Carrier, Coroutine, suspend};
pub use doctor::{Fact, Facts, doctor};
pub use fiber::{Fiber, FiberError, Remains, load_block_of};
