//! Waiting for files: goroutines and plain threads that the poller makes runnable.
//!
//! Go's `netpoll`. A [`PollFd`] is a file that is registered with the poller, once, for both
//! directions. Who finds it not ready waits there; whoever polls makes it ready.
//!
//! Polled by:
//! * the machine that sleeps in the poller, see `idle`;
//! * a machine that finds its own and the global queue empty, in passing, before it steals, unless
//!   it sees something to steal, which has waited longer than what it would find here;
//! * the monitor, while all processors are busy with goroutines that don't come by.
//!
//! Where the woken go is Go 1.27's rule: one for each idle processor to the global queue, the rest
//! to the own ring; all to the global queue from a machine without a processor.

use crate::cancel::{Cancellation, block_until_unless};
use crate::critical::Critical;
use crate::goroutine::GRef;
use crate::machine::{Inside, Machine};
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::wait::{self, Waiter};
use crate::{idle, park, slab, start, steal, transition};
use gosched_base::os::{self, Errno};
use gosched_poll::{Descriptor, Wait};
use gosched_protocol::Status;
use gosched_runq::List;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::RawFd;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::Instant;

/// How many files are registered. While there are none nobody polls in passing.
static REGISTERED: AtomicU32 = AtomicU32::new(0);
/// Whether some machine looks in passing: one at a time is enough.
static LOOKING: AtomicBool = AtomicBool::new(false);
/// How often anybody has looked in passing; the monitor looks if it stands still.
static POLLS: AtomicU64 = AtomicU64::new(0);
/// When anybody has last come out of the poller, on the monotonic clock.
static POLLED_AT: AtomicU64 = AtomicU64::new(0);
/// How often a machine has slept in the poller.
static SLEEPS: AtomicU64 = AtomicU64::new(0);

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Until there is something to read or accept, or the end, or an error.
    Read,
    /// Until there is room to write, a connection is made, or an error.
    Write,
}

/// A file that is registered with the poller.
///
/// The readiness that it reports is a hint: "something has changed since the last look". So the
/// order is: look (a call that doesn't block), wait if there was nothing, look again.
///
/// One caller at a time waits in each direction.
#[derive(Debug)]
pub struct PollFd {
    descriptor: &'static Descriptor,
}

impl PollFd {
    /// Registers `fd`, which must not block; starts the runtime if it has not started.
    ///
    /// # Errors
    /// A kind of file that is always ready (`EPERM`), one that is registered already, a limit of
    /// the system's.
    pub fn add(fd: RawFd) -> io::Result<PollFd> {
        start::ensure_started();
        let added = inside(|| SCHEDULER.poller().add(fd));
        let descriptor = added.map_err(|Errno(number)| io::Error::from_raw_os_error(number))?;
        // ORDERING: Relaxed; the caller looks at the file before it waits, and whoever misses this
        // one leaves it to the sleeper in the poller, or to the monitor.
        REGISTERED.fetch_add(1, Relaxed);
        Ok(PollFd { descriptor })
    }

    /// Ends the registration of `fd`, before the file is closed. Nobody waits.
    pub fn remove(self, fd: RawFd) {
        // ORDERING: Relaxed; as in `add`.
        REGISTERED.fetch_sub(1, Relaxed);
        inside(|| SCHEDULER.poller().remove(fd, self.descriptor));
    }

    /// Waits until something has changed since the caller has looked, at most until `deadline`, or
    /// until it is cancelled. False: the time is over, or it is cancelled.
    pub fn wait(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        cancellation: Option<&Cancellation>,
    ) -> bool {
        let readiness = match direction {
            Direction::Read => &self.descriptor.read,
            Direction::Write => &self.descriptor.write,
        };
        // Without the way through the scheduler. A note that comes from here on is found by `commit`.
        if readiness.take() {
            return true;
        }
        let commit = |waiter: Waiter| readiness.wait(waiter.into_word());
        let expire = || readiness.time_out();
        match (deadline, cancellation) {
            (None, None) => wait::block(WaitReason::IoWait, commit),
            (Some(deadline), None) => {
                wait::block_until(WaitReason::IoWait, deadline, commit, expire);
            }
            (_, Some(cancellation)) => {
                block_until_unless(WaitReason::IoWait, deadline, cancellation, commit, expire);
            }
        }
        // A wait that found the note has taken it, and one that was woken finds it.
        let is_ready = readiness.take();
        let has_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        is_ready || has_time() && cancellation.is_none_or(|it| !it.is_cancelled())
    }

    /// Whether a read that got less than it has asked for has left nothing behind, so that the next
    /// one may wait without a look. The caller has taken a note before it read, and the file is a
    /// stream whose reads end early only where it is empty.
    #[inline]
    #[must_use]
    pub fn short_read_empties(&self) -> bool {
        self.descriptor.short_read_empties()
    }

    /// Makes whoever waits, or waits next, look again.
    pub fn make_ready(&self, direction: Direction) {
        let readiness = match direction {
            Direction::Read => &self.descriptor.read,
            Direction::Write => &self.descriptor.write,
        };
        // `Waiter::wake` would leave the runtime, and perhaps come back on another machine.
        let critical = Critical::enter();
        if let Some(word) = readiness.make_ready() {
            critical.wake(waiter(word));
        }
    }
}

/// Calls `f` inside the runtime, so that the caller isn't stopped within. `f` must not enter it
/// again: the leave would be `f`'s.
fn inside<R>(f: impl FnOnce() -> R) -> R {
    let inside = Inside::enter();
    let result = f();
    if let Some(inside) = inside {
        inside.leave();
    }
    result
}

fn waiter(word: NonZeroUsize) -> Waiter {
    // SAFETY: only `PollFd::wait` registers words, those of waiters.
    unsafe { Waiter::from_word(word) }
}

/// Goroutines that polling has made runnable, in no queue yet.
pub(crate) type Ready = List<GRef>;

/// Polls, perhaps asleep, and returns the goroutines that can go on. Plain threads are woken.
pub(crate) fn poll(wait: Wait) -> Ready {
    let mut ready = List::new();
    SCHEDULER.poller().wait(wait, |word| match waiter(word).as_goroutine() {
        Some(g) => {
            transition::ready(g);
            ready.push_back(g);
        }
        None => waiter(word).wake(),
    });
    let count = if wait == Wait::Never { &POLLS } else { &SLEEPS };
    // ORDERING: Relaxed for both; statistics, and a hint for the monitor.
    count.fetch_add(1, Relaxed);
    // ORDERING: as above.
    POLLED_AT.store(os::monotonic_ns(), Relaxed);
    ready
}

/// Polls in passing, unless somebody sleeps in the poller: see [`look`].
pub(crate) fn take_ready(p: &'static Processor) -> Option<GRef> {
    if SCHEDULER.is_polled() { None } else { look(p) }
}

/// As [`take_ready`], for a machine that is out of goroutines; it looks although somebody sleeps in
/// the poller if it has just run one. What that one has sent may be for another one here, and a look
/// is a fraction of what it takes until the sleeper has a CPU.
///
/// Not where it sees something to steal: that has been runnable for longer, perhaps behind a goroutine
/// that computes, or a machine that waits for a CPU, and would be passed again and again by a network
/// that always has something.
pub(crate) fn take_ready_before_stealing(machine: &Machine, p: &'static Processor) -> Option<GRef> {
    if !has_files() || steal::is_worth_it(machine, p) {
        return None;
    }
    if machine.is_searching.get() { take_ready(p) } else { look(p) }
}

/// Polls without sleeping, unless somebody does the same: the first goroutine runs, the others are
/// queued.
fn look(p: &'static Processor) -> Option<GRef> {
    if !has_files() {
        return None;
    }
    // ORDERING: Relaxed look; AcqRel and Release: one looks at a time.
    if LOOKING.load(Relaxed) || LOOKING.swap(true, AcqRel) {
        return None;
    }
    let mut ready = poll(Wait::Never);
    LOOKING.store(false, Release);
    let first = ready.pop_front()?;
    place(p, ready);
    Some(first)
}

/// As [`place`], but the first one is for the caller to run.
pub(crate) fn place_first(p: &'static Processor, mut ready: Ready) {
    if let Some(first) = ready.pop_front() {
        park::push_front(p, first);
        place(p, ready);
    }
}

/// Queues what polling has found, from a machine that holds `p`.
pub(crate) fn place(p: &'static Processor, mut ready: Ready) {
    if ready.is_empty() {
        return;
    }
    // For machines that are woken now; they would have to steal from this ring otherwise.
    let idle = SCHEDULER.idle_count() as usize;
    SCHEDULER.global.append(ready.take(idle));
    while let Some(g) = ready.pop_front() {
        park::push_back(p, g);
    }
    idle::wake_one();
}

/// As [`place`], from a machine without a processor: all of them are busy.
pub(crate) fn place_without_processor(mut ready: Ready) {
    while let Some(g) = ready.pop_front() {
        park::inject(g);
    }
}

/// Whether there is anything to poll for.
#[inline]
pub(crate) fn has_files() -> bool {
    // ORDERING: Relaxed; see `PollFd::add`.
    REGISTERED.load(Relaxed) > 0
}

/// How often anybody has polled: in passing, and asleep.
pub(crate) fn counts() -> (u64, u64) {
    // ORDERING: Relaxed; statistics.
    (POLLS.load(Relaxed), SLEEPS.load(Relaxed))
}

/// When anybody has last looked at the files, on the monotonic clock.
pub(crate) fn polled_at() -> u64 {
    // ORDERING: Relaxed; a hint.
    POLLED_AT.load(Relaxed)
}

/// Whether some goroutine waits for a file: the poller may wake it at any time.
pub(crate) fn is_any_waiting() -> bool {
    let mut waits = false;
    slab::for_each(|g| {
        waits |= g.status.get() == Status::Waiting && g.reason() == WaitReason::IoWait;
    });
    waits
}
