//! What most programs use, for `use gosched::prelude::*`.
//!
//! Names that std has too (`thread`, `sync::Mutex`) are left out: which one is meant should be
//! seen.
//!
//! ```
//! use gosched::prelude::*;
//!
//! let (tx, rx) = bounded(0);
//! go(move || tx.send(7));
//! assert_eq!(select! { recv(rx) -> n => n }, Ok(7));
//! ```

pub use crate::channel::{Receiver, Sender, bounded, unbounded};
pub use crate::context::{Context, background, with_cancel, with_timeout};
pub use crate::sync::{Group, WaitGroup};
pub use crate::{Limiter, blocking, go, run, select};
