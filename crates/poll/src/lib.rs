//! Where idle machines sleep: a kernel poller with a bell.
//!
//! Layer: `poll`. Uses `base`, `protocol`. Knows nothing of goroutines: who waits is a word.
//!
//! Files are registered once, for both directions, edge-triggered: the kernel tells of each change
//! once, and a [`Descriptor`] keeps it until somebody looks.
//!
//! A port is a new file with the same list of functions: open, add, remove, wait with a time-out,
//! ring.
//!
//! Go's counterpart is `runtime/netpoll.go` with `netpollBreak`. Where Go rounds time-outs to
//! milliseconds, this one keeps nanoseconds (`epoll_pwait2`, Linux 5.11).

mod descriptor;
#[cfg(target_os = "linux")]
mod epoll;

pub use descriptor::Descriptor;
#[cfg(target_os = "linux")]
pub use epoll::{Poller, Wait};
