//! Sleeping, and timers. Go's `time`; durations and instants are std's.
//!
//! Everything works on plain threads as well. Deadlines are precise below a millisecond, and a
//! duration beyond the clock's range never passes.

pub use gosched_channel::timer::{Ticker, Timer};
pub use gosched_channel::{after, at, tick};
pub use gosched_sched::{AfterFunc, Cancelled, after_func, sleep, sleep_ctx, sleep_until};

use std::fmt;
use std::panic::resume_unwind;
use std::time::Duration;

/// Runs `f` in a goroutine of its own, and waits for its result for `d` at most.
///
/// Nothing kills a goroutine from outside: if the time is over `f` goes on, and its result is
/// dropped. To make it end early, give it a channel or a context to look at.
///
/// ```
/// use gosched::time::{sleep, timeout};
/// use std::time::Duration;
///
/// assert_eq!(timeout(Duration::from_secs(60), || 6 * 7), Ok(42));
/// let slow = timeout(Duration::from_millis(1), || sleep(Duration::from_secs(3600)));
/// assert!(slow.is_err());
/// ```
///
/// # Errors
/// If the time is over.
///
/// # Panics
/// If `f` does, with its payload.
#[track_caller]
pub fn timeout<T, F>(d: Duration, f: F) -> Result<T, Elapsed>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (done, ended) = gosched_channel::bounded::<()>(0);
    let task = crate::go(move || {
        // Dropped when `f` has ended, however it does.
        let _done = done;
        f()
    });
    match ended.recv_timeout(d) {
        Err(gosched_channel::RecvTimeoutError::Timeout) => Err(Elapsed(())),
        Ok(()) | Err(gosched_channel::RecvTimeoutError::Disconnected) => {
            task.join().map_err(|payload| resume_unwind(payload))
        }
    }
}

/// The error of [`timeout`]: the time was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time was over")
    }
}

impl std::error::Error for Elapsed {}
