//! Channels and select, in the shape of crossbeam-channel 0.5.
//!
//! Layer: `channel`. Uses `base` and `sched`. Unsafe: waiters on stacks, and values moved between
//! stacks.
//!
//! Every operation works from goroutines and from plain threads, which may meet in one channel. A
//! goroutine that waits gives its machine to another one.
//!
//! Reading order: a channel is made ([`bounded`], [`unbounded`], [`after`]) with two ends
//! ([`Sender`], [`Receiver`]). An end's operations are steps of `chan` under the lock of `core`,
//! whose queues hold the waiters' records (`node`, `queue`); messages lie in `store`. `select`
//! waits in several queues at once. The protocol between those who meet is in README.md.

mod chan;
mod clock;
mod core;
mod ctx;
mod error;
mod iter;
mod make;
mod node;
mod profile;
mod queue;
mod receiver;
mod rt;
mod select;
mod sender;
mod store;
#[doc(hidden)]
pub mod timer;

pub use ctx::Done;
pub use error::{
    ReadyTimeoutError, RecvCtxError, RecvError, RecvTimeoutError, SelectTimeoutError, SendCtxError,
    SendError, SendTimeoutError, TryReadyError, TryRecvError, TrySelectError, TrySendError,
};
pub use iter::{IntoIter, Iter, TryIter};
pub use make::{after, at, bounded, never, tick, unbounded};
pub use receiver::Receiver;
pub use select::{Select, SelectedOperation, internal};
pub use sender::Sender;
