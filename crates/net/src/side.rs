//! One direction of a file: whose turn it is, and until when calls may wait.

use crate::turn::Turn;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One direction of a file.
pub(crate) struct Side {
    pub(crate) turn: Turn,
    /// The last look under the turn has left nothing: who has the turn may wait without another.
    /// Written by: who has the turn.
    is_empty: AtomicBool,
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
        Side {
            turn: Turn::new(),
            is_empty: AtomicBool::new(false),
            timeout_ns: AtomicU64::new(0),
            deadline_ns: AtomicU64::new(0),
        }
    }

    /// With the same limits as `other` has now.
    pub(crate) fn like(other: &Side) -> Side {
        let side = Side::new();
        // ORDERING: Relaxed for all; settings, which order nothing else.
        side.timeout_ns.store(other.timeout_ns.load(Relaxed), Relaxed);
        side.deadline_ns.store(other.deadline_ns.load(Relaxed), Relaxed);
        side
    }

    /// Whether it seems that there is nothing; a hint for those without the turn.
    #[inline]
    pub(crate) fn seems_empty(&self) -> bool {
        // ORDERING: Relaxed; `take_empty` asks again under the turn.
        self.is_empty.load(Relaxed)
    }

    /// Whether there was nothing left when the turn was last held. From now on there may be: the
    /// caller is about to take a note. Holder of the turn only.
    pub(crate) fn take_empty(&self) -> bool {
        // ORDERING: Relaxed; the turn's lock orders its holders.
        let is_empty = self.is_empty.load(Relaxed);
        self.is_empty.store(false, Relaxed);
        is_empty
    }

    /// The caller's look has left nothing. Holder of the turn only.
    pub(crate) fn note_empty(&self) {
        // ORDERING: Relaxed; as in `take_empty`.
        self.is_empty.store(true, Relaxed);
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
