//! One direction of a file: whose turn it is, and until when calls may wait.

use crate::turn::Turn;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One direction of a file.
pub(crate) struct Side {
    pub(crate) turn: Turn,
    /// How long each call may wait, in nanoseconds; 0: as long as it takes.
    timeout_ns: AtomicU64,
    /// Until when all calls may wait, in nanoseconds after [`EPOCH`]; 0: for ever.
    deadline_ns: AtomicU64,
}

/// Any time before the first deadline.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn nanoseconds(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1)
}

impl Side {
    pub(crate) const fn new() -> Side {
        Side { turn: Turn::new(), timeout_ns: AtomicU64::new(0), deadline_ns: AtomicU64::new(0) }
    }

    /// With the same limits as `other` has now.
    pub(crate) fn like(other: &Side) -> Side {
        let side = Side::new();
        // ORDERING: Relaxed for all; settings, which order nothing else.
        side.timeout_ns.store(other.timeout_ns.load(Relaxed), Relaxed);
        side.deadline_ns.store(other.deadline_ns.load(Relaxed), Relaxed);
        side
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        // ORDERING: Relaxed; a setting.
        Some(self.timeout_ns.load(Relaxed)).filter(|ns| *ns > 0).map(Duration::from_nanos)
    }

    /// # Errors
    /// A time-out of zero, as std's.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot set a 0 duration timeout",
            ));
        }
        // ORDERING: Relaxed; a setting.
        self.timeout_ns.store(timeout.map_or(0, nanoseconds), Relaxed);
        Ok(())
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        // ORDERING: Relaxed; whoever changes it makes waiting calls look again, by the turn's lock
        // and the readiness word.
        match self.deadline_ns.load(Relaxed) {
            0 => None,
            ns => EPOCH.checked_add(Duration::from_nanos(ns)),
        }
    }

    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        let ns = deadline.map_or(0, |at| nanoseconds(at.saturating_duration_since(*EPOCH)));
        // ORDERING: Relaxed; see `deadline`.
        self.deadline_ns.store(ns, Relaxed);
    }

    /// # Errors
    /// `TimedOut`: the deadline is over.
    #[inline]
    pub(crate) fn check_deadline(&self) -> io::Result<()> {
        match self.deadline() {
            Some(deadline) if deadline <= Instant::now() => Err(too_late()),
            _ => Ok(()),
        }
    }
}

pub(crate) fn too_late() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
