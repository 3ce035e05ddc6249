//! Timers and tickers: clocks that can be stopped and reset. Users find them in `gosched::time`.

use crate::clock::Clock;
use crate::receiver::{Flavor, Receiver};
use std::convert::identity;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A channel that delivers the time once, and can be stopped and set anew. Go's `time.Timer`, with
/// the guarantees of Go 1.23: after [`stop`](Timer::stop) or [`reset`](Timer::reset) nobody receives
/// a message of an earlier setting.
///
/// While nobody waits for it a timer costs nothing, and dropping it cancels nothing for those who
/// have a clone of its channel. The message is the time for which it was set.
///
/// ```
/// use gosched_channel::timer::Timer;
/// use std::time::Duration;
///
/// let timer = Timer::new(Duration::from_secs(3600));
/// assert!(timer.reset(Duration::from_millis(1))); // it was still to come
/// timer.c().recv().unwrap();
/// assert!(!timer.stop()); // its message was received
/// ```
pub struct Timer {
    clock: Arc<Clock>,
    channel: Receiver<Instant>,
}

impl Timer {
    /// A timer for `d` from now. A `d` beyond the clock's range never passes.
    ///
    /// ```
    /// # use gosched_channel::{select, timer::Timer};
    /// # use std::time::Duration;
    /// let (_s, jobs) = gosched_channel::bounded::<u8>(0);
    /// let timer = Timer::new(Duration::from_millis(1));
    /// select! {
    ///     recv(jobs) -> _ => unreachable!(),
    ///     recv(timer.c()) -> _ => {}
    /// }
    /// ```
    #[must_use]
    pub fn new(d: Duration) -> Timer {
        let (clock, channel) = ends(Clock::timer(d));
        Timer { clock, channel }
    }

    /// Where the message comes. Go's field `C`. The channel never closes.
    #[must_use]
    pub fn c(&self) -> &Receiver<Instant> {
        &self.channel
    }

    /// Stops it: there will be no message. Go's `Timer.Stop`.
    ///
    /// True if it was set and its message not received, which is gone then, whether it was due or
    /// not.
    ///
    /// ```
    /// # use gosched_channel::timer::Timer;
    /// # use std::time::Duration;
    /// let timer = Timer::new(Duration::ZERO);
    /// assert!(timer.stop()); // due, but not received
    /// assert!(timer.c().try_recv().is_err());
    /// assert!(!timer.stop());
    /// ```
    pub fn stop(&self) -> bool {
        self.clock.stop()
    }

    /// Sets it anew, for `d` from now. Go's `Timer.Reset`. Returns what [`stop`](Timer::stop) would.
    pub fn reset(&self, d: Duration) -> bool {
        self.clock.reset(d)
    }
}

/// A channel that delivers the time again and again. Go's `time.Ticker`.
///
/// Ticks are due at multiples of the period. A slow receiver finds one tick, and those that it
/// missed are left out, without shifting later ones. (crossbeam-channel's
/// [`tick`](crate::tick) waits a period from when the last was taken.)
///
/// ```
/// use gosched_channel::timer::Ticker;
/// use std::time::Duration;
///
/// let period = Duration::from_millis(1);
/// let ticker = Ticker::new(period);
/// let first = ticker.c().recv().unwrap();
/// std::thread::sleep(period * 5);
/// ticker.c().recv().unwrap();
/// let third = ticker.c().recv().unwrap();
/// assert!(third >= first + period * 5);
/// ```
pub struct Ticker {
    clock: Arc<Clock>,
    channel: Receiver<Instant>,
}

impl Ticker {
    /// A ticker whose first tick comes after `period`.
    ///
    /// # Panics
    /// If `period` is zero.
    #[must_use]
    #[track_caller]
    pub fn new(period: Duration) -> Ticker {
        assert!(!period.is_zero(), "non-positive interval for Ticker::new");
        let (clock, channel) = ends(Clock::ticker(period));
        Ticker { clock, channel }
    }

    /// Where the ticks come. Go's field `C`. The channel never closes.
    #[must_use]
    pub fn c(&self) -> &Receiver<Instant> {
        &self.channel
    }

    /// Stops it: there are no more ticks, until a [`reset`](Ticker::reset). Go's `Ticker.Stop`.
    ///
    /// ```
    /// # use gosched_channel::timer::Ticker;
    /// # use std::time::Duration;
    /// let ticker = Ticker::new(Duration::from_nanos(1));
    /// ticker.stop();
    /// assert!(ticker.c().try_recv().is_err());
    /// ticker.reset(Duration::from_millis(1));
    /// ticker.c().recv().unwrap();
    /// ```
    pub fn stop(&self) {
        self.clock.stop();
    }

    /// Stops it, and lets it tick every `period` from now on. Go's `Ticker.Reset`.
    ///
    /// # Panics
    /// If `period` is zero.
    #[track_caller]
    pub fn reset(&self, period: Duration) {
        assert!(!period.is_zero(), "non-positive interval for Ticker::reset");
        self.clock.reset_period(period);
    }
}

fn ends(clock: Clock) -> (Arc<Clock>, Receiver<Instant>) {
    let clock = Arc::new(clock);
    (Arc::clone(&clock), Receiver::new(Flavor::Clock(clock, identity)))
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("due", &self.clock.due()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("due", &self.clock.due()).finish_non_exhaustive()
    }
}

impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}
impl UnwindSafe for Ticker {}
impl RefUnwindSafe for Ticker {}
