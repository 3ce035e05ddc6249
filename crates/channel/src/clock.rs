//! Channels that deliver the time: `after`, `at` and `tick`, timers and tickers.
//!
//! There is no timer behind them. Whoever receives knows when the message is due and waits until
//! then; while nobody waits nothing is armed.
//!
//! One word says when the next message is due, and everyone who takes, stops or resets it changes
//! that word by one exchange: no message outlives a stop or a reset. A clock that can be reset has a
//! queue of those who wait, so that they look again when their message is due earlier.

use crate::core::{Core, Patience, Side};
use crate::rt::{AtomicU64, Critical, Ordering::Relaxed, WaitReason, block, block_until};
use std::ptr;
use std::time::{Duration, Instant};

/// When messages are due.
pub(crate) struct Clock {
    /// From which times are counted.
    start: Instant,
    /// When the next is due, in nanoseconds after `start`; `NEVER` if there is none.
    next: AtomicU64,
    repeat: Repeat,
    /// Those who wait, if the next one may become due earlier than they know.
    waiters: Option<Core>,
}

/// What follows a message, in nanoseconds.
enum Repeat {
    Nothing,
    /// The next one comes that long after the last was taken.
    AfterTaken(u64),
    /// The next one comes that long after the last was due; those missed are left out.
    InPhase(AtomicU64),
}

const NEVER: u64 = u64::MAX;
const LATEST: u64 = NEVER - 1;

/// As many as the clock can count.
fn nanoseconds(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(LATEST).min(LATEST)
}

impl Clock {
    pub(crate) fn at(when: Instant) -> Clock {
        Clock { start: when, next: AtomicU64::new(0), repeat: Repeat::Nothing, waiters: None }
    }

    pub(crate) fn tick(first: Instant, period: Duration) -> Clock {
        let repeat = Repeat::AfterTaken(nanoseconds(period));
        Clock { start: first, next: AtomicU64::new(0), repeat, waiters: None }
    }

    /// One that can be stopped and reset, first due after `d`.
    pub(crate) fn timer(d: Duration) -> Clock {
        Clock::with_waiters(d, Repeat::Nothing)
    }

    /// As [`timer`](Clock::timer), and from then on again and again.
    pub(crate) fn ticker(period: Duration) -> Clock {
        Clock::with_waiters(period, Repeat::InPhase(AtomicU64::new(nanoseconds(period))))
    }

    fn with_waiters(d: Duration, repeat: Repeat) -> Clock {
        let next = AtomicU64::new(nanoseconds(d));
        Clock { start: Instant::now(), next, repeat, waiters: Some(Core::new(1)) }
    }

    pub(crate) fn waiters(&self) -> Option<&Core> {
        self.waiters.as_ref()
    }

    /// When the next message is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        // ORDERING: Relaxed; the word is all there is. Who waits looks under the waiters' lock.
        self.instant(self.next.load(Relaxed))
    }

    fn instant(&self, next: u64) -> Option<Instant> {
        (next != NEVER).then(|| self.start.checked_add(Duration::from_nanos(next))).flatten()
    }

    /// Takes the message if one is due: the time for which it was due. `since` is when the caller
    /// began to wait; who was there in time gets the next one of a `tick` a period later.
    pub(crate) fn poll(&self, since: Instant) -> Option<Instant> {
        loop {
            // ORDERING: Relaxed here and below; the word is all there is.
            let next = self.next.load(Relaxed);
            let due = self.instant(next)?;
            let now = Instant::now();
            if now < due {
                return None;
            }
            let following = self.following(next, due.max(since), now);
            if self.next.compare_exchange(next, following, Relaxed, Relaxed).is_ok() {
                return Some(due);
            }
        }
    }

    /// A slow receiver gets one message, not all that it missed.
    fn following(&self, next: u64, taken: Instant, now: Instant) -> u64 {
        match &self.repeat {
            Repeat::Nothing => NEVER,
            Repeat::AfterTaken(period) => {
                self.since_start(taken).saturating_add(*period).min(LATEST)
            }
            Repeat::InPhase(period) => {
                // ORDERING: Relaxed; a reset changes `next` after it, and the exchange fails then.
                let period = period.load(Relaxed);
                let missed = self.since_start(now).saturating_sub(next) / period;
                next.saturating_add(period.saturating_mul(missed + 1)).min(LATEST)
            }
        }
    }

    fn since_start(&self, when: Instant) -> u64 {
        nanoseconds(when.saturating_duration_since(self.start))
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due().is_some_and(|due| Instant::now() >= due)
    }

    /// There is no next message. True if there was one, received by nobody; it is gone.
    pub(crate) fn stop(&self) -> bool {
        // Who waits for it wakes when it would have been due, and waits on.
        // ORDERING: Relaxed; the word is all there is.
        self.next.swap(NEVER, Relaxed) != NEVER
    }

    /// The next message is due after `d`. True if there was one, received by nobody; it is gone.
    pub(crate) fn reset(&self, d: Duration) -> bool {
        let next = self.since_start(Instant::now()).saturating_add(nanoseconds(d)).min(LATEST);
        // ORDERING: Relaxed; the word is all there is, and who waits looks at it under the lock
        // that is taken below.
        let before = self.next.swap(next, Relaxed);
        if next < before
            && let Some(waiters) = &self.waiters
        {
            waiters.make_look_again();
        }
        before != NEVER
    }

    /// As [`reset`](Clock::reset), and later messages follow every `period`.
    pub(crate) fn reset_period(&self, period: Duration) {
        if let Repeat::InPhase(ns) = &self.repeat {
            // ORDERING: Relaxed; see `following`.
            ns.store(nanoseconds(period), Relaxed);
        }
        self.reset(period);
    }

    /// Waits for a message; `None` if the patience ends.
    pub(crate) fn wait(&self, patience: Patience) -> Option<Instant> {
        let since = Instant::now();
        loop {
            if let Some(message) = self.poll(since) {
                return Some(message);
            }
            if patience.is_over() {
                return None;
            }
            match (&self.waiters, self.due()) {
                (Some(waiters), _) => self.wait_among(waiters, patience),
                (None, Some(due)) => {
                    wait_for_nobody(WaitReason::ChanReceive, patience.until(Some(due)));
                }
                (None, None) => wait_for_nobody(WaitReason::ChanReceiveNil, patience),
            }
        }
    }

    /// Waits until the message is due, as it is known under the lock, or somebody says to look again.
    fn wait_among(&self, waiters: &Core, patience: Patience) {
        let critical = Critical::enter();
        let state = waiters.lock();
        let patience = patience.until(self.due());
        waiters.wait(critical, state, Side::Receive, ptr::null_mut(), patience);
    }
}

/// Waits until the patience ends.
pub(crate) fn wait_for_nobody(reason: WaitReason, patience: Patience) {
    match patience {
        Patience::None => {}
        Patience::Until(deadline) => block_until(reason, deadline, |_| true, || true),
        Patience::Endless => loop {
            block(reason, |_| true);
        },
    }
}
