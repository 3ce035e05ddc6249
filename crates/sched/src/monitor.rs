//! The monitor: a thread that sees to it that nothing can block or starve the processors.
//!
//! Go's `sysmon`. It holds no processor, allocates nothing, formats nothing and takes only leaf
//! locks of the runtime.
//!
//! Each round: due timers are run, and files looked at, if no machine does; processors of machines
//! that are in a declared call for two looks, or asleep in the kernel undeclared, are handed to
//! other machines. Once a second it looks whether the default of GOMAXPROCS has changed.
//!
//! Rounds come every 20 us at first. After 50 rounds in which there was nothing to do the pause
//! doubles, up to 10 ms (Go's numbers), and a timer that falls due ends it. While goroutines wait for a
//! processor it is 5 ms at most, and 1 ms if a round of the last second has found somebody to help, or
//! there are files.
//! When all processors have been idle for a while the monitor sleeps until one is not.

mod lead;
mod network;
mod placing;
mod rest;
mod retake;
mod thread;

pub(crate) use placing::SliceWatch;
pub(crate) use rest::Share;
pub(crate) use retake::{Watch, take_if_asleep};

use crate::config::Report;
use crate::report::Reporter;
use crate::scheduler::SCHEDULER;
use crate::start::block_signals;
use crate::{background, gomaxprocs, idle, interrupt, netpoll, start, world};
use gosched_base::{Lock, Parker, os};
use gosched_protocol::Bell;
use lead::Lead;
use rest::Rest;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const PAUSE_MIN_NS: u64 = 20_000;
const PAUSE_MAX_NS: u64 = 10_000_000;
/// The longest pause while files wait for a look, or goroutines for a processor that may be blocked and
/// this thread had to help lately.
const PAUSE_WANTED_NS: u64 = 1_000_000;
/// The same while goroutines wait and it had not: a look costs 16 us and more on a virtual machine, and
/// where goroutines wait there is no CPU left over for it.
const PAUSE_UNNEEDED_NS: u64 = 5_000_000;
/// For how long it counts as needed.
const LATELY_NS: u64 = 1_000_000_000;
/// The pause while nobody else seems to look at files.
const PAUSE_POLLING_NS: u64 = 150_000;
/// The pause while processors see to their due timers themselves and there is no CPU for this thread
/// but theirs.
const PAUSE_SEEN_TO_NS: u64 = 100_000;
/// The pause before a look that somebody waits for.
const PAUSE_PENDING_NS: u64 = 50_000;
/// Rounds without result before the pause grows.
const PATIENCE: u32 = 50;
/// How long all processors have been idle before the deep sleep.
const IDLE_FOR_NS: u64 = 100_000_000;
/// A round that came this much too late says that the whole process was stopped; what it would see
/// means nothing.
const SLEPT_TOO_LONG_NS: u64 = 20_000_000;

/// What it is to print, from the start.
static REPORT: Lock<Option<Report>> = Lock::new(None);

/// One revoker at a time: this thread, or whoever stops the world.
pub(crate) static REVOKER: Lock<()> = Lock::new(());
static BELL: Bell = Bell::new();
static PARKER: Parker = Parker::new();
/// Whether the monitor's pause is long.
static IS_SLOW: AtomicBool = AtomicBool::new(false);
/// When the monitor will look again at the latest.
static NEXT_LOOK: AtomicU64 = AtomicU64::new(u64::MAX);

/// Ends the monitor's pause. Not for the monitor itself: it would never pause again, and with its
/// short slice take the CPU from whoever it waits for.
fn call() {
    SCHEDULER.counts.monitor_calls.add_shared();
    PARKER.wake();
}

/// A number that only the monitor touches, in a record that others share.
#[derive(Debug, Default)]
pub(crate) struct Noted(AtomicU64);

impl Noted {
    pub(crate) const fn new() -> Noted {
        Noted(AtomicU64::new(0))
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Relaxed; only the monitor touches it.
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, n: u64) {
        // ORDERING: Relaxed; as above.
        self.0.store(n, Relaxed);
    }

    fn replace(&self, n: u64) -> u64 {
        let before = self.get();
        self.set(n);
        before
    }
}

/// A processor is busy that may have been idle: the monitor must not be in its deep sleep. With all
/// of them busy nobody sleeps in the poller for the timers; if their machines block undeclared now,
/// a monitor that has slowed down must still be there in time.
#[inline]
pub(crate) fn note_busy() {
    if BELL.claim() {
        call();
    } else if SCHEDULER.idle_count() == 0 && is_slow() {
        stand_by_for_timers();
    }
}

/// Due timers have just been run by a machine that was woken for them.
#[inline]
pub(crate) fn note_timers_run() {
    if SCHEDULER.idle_count() == 0 && is_slow() {
        stand_by_for_timers();
    }
}

/// A timer that is due already is run by whoever has just become busy.
#[cold]
fn stand_by_for_timers() {
    let next = idle::next_deadline();
    if next != u64::MAX && next > os::monotonic_ns() {
        look_no_later_than(next);
    }
}

fn is_slow() -> bool {
    // ORDERING: Relaxed; a late look is late by one pause.
    IS_SLOW.load(Relaxed)
}

/// A declared call has begun while others wait for the processor: a monitor that has slowed down
/// must not be what they wait for.
#[inline]
pub(crate) fn note_call(work_waits: bool) {
    // ORDERING: Relaxed for both; a late look is late by one pause.
    if work_waits && is_slow() && IS_SLOW.swap(false, Relaxed) {
        call();
    }
}

/// A plain thread has made a goroutine runnable while every processor is busy.
pub(crate) fn look_for_urgent() {
    call();
}

/// A timer was armed that no machine in the poller waits for.
pub(crate) fn look_no_later_than(when: u64) {
    // ORDERING: Relaxed; a late look is late by one pause, 10 ms at most.
    if NEXT_LOOK.load(Relaxed) > when {
        call();
    }
}

/// Starts the monitor. Once.
pub(crate) fn start_thread(report: Option<Report>) -> std::io::Result<()> {
    SCHEDULER.machine_started();
    *REPORT.lock() = report;
    thread::start()
}

fn watch() {
    let mut reporter = Reporter::new(*REPORT.lock());
    block_signals();
    be_precise();
    let mut without = 0;
    let mut pace = Pace::new();
    let mut lead = Lead::new();
    let mut rest = Rest::new();
    loop {
        let (pause, timer) = pace.pause_until();
        let asked = pause.min(timer).min(reporter.next());
        // ORDERING: Relaxed; see `look_no_later_than`.
        NEXT_LOOK.store(asked, Relaxed);
        let was_called = if asked == timer {
            lead.sleep_until(timer, &PARKER)
        } else {
            PARKER.sleep_until(asked)
        };
        let now = os::monotonic_ns();
        if now > asked + SLEPT_TOO_LONG_NS {
            // What seems asleep may have been stopped like this thread.
            retake::forget_samples();
        }
        pace.was_called = was_called;
        let found = round(now, &mut without, was_called, &mut pace.timers_are_seen_to, &mut rest);
        pace.adapt(found, now, rest.somebody_rests());
        gomaxprocs::look(now);
        background::look(now);
        reporter.print_if_due(now);
        if SCHEDULER.are_all_unused() && !reporter.is_on() {
            if now - *pace.idle_since.get_or_insert(now) > IDLE_FOR_NS {
                sleep_deeply();
                pace = Pace::new();
            }
        } else {
            pace.idle_since = None;
        }
    }
}

/// What a round came to.
enum Found {
    /// Nothing to do.
    Nothing,
    /// Nothing to do yet: a call may have to be interrupted, and so long a pause is short enough.
    Stuck(u64),
    /// Somebody waits for what the next look may show: it comes soon.
    Pending,
    /// The same, and there were goroutines to give a processor to.
    Placed,
    /// A processor changed hands: more of that is likely.
    HandOff,
}

/// Everything the monitor sees to. Nothing while the world is stopped: processors are in nobody's
/// hands then.
fn round(
    now: u64,
    without: &mut u32,
    was_called: bool,
    timers_are_seen_to: &mut bool,
    rest: &mut Rest,
) -> Found {
    let _one_revoker = REVOKER.lock();
    if world::is_stopping() {
        return Found::Pending;
    }
    rest.look(now);
    let due = placing::run_due_timers(now);
    *timers_are_seen_to = due.are_seen_to && !lead::has_spare_cpu();
    let placed = due.placed + placing::run_injected(now) + network::run_ready(now);
    let taken = retake::retake(now);
    if taken + retake::stop_those_without_processor(without) > 0 {
        return Found::HandOff;
    }
    let overdue = placing::preempt_overdue(now);
    let pressed = placing::press_urgent(now);
    match interrupt::as_last_resort(now) {
        _ if placed + pressed > 0 => Found::Placed,
        _ if overdue > 0 || was_called => Found::Pending,
        Some(pause) => Found::Stuck(pause),
        None => Found::Nothing,
    }
}

/// Timer slack of 1 ns, and a short slice (Linux 6.12), so that the monitor's wake-ups are not
/// late behind computing threads. Neither needs a privilege; where they are missing it is late.
fn be_precise() {
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    // SAFETY: no memory is passed. The nice value of this thread, which it is to keep.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let mut attributes =
        SchedAttributes { size: 48, nice, runtime_ns: 100_000, ..Default::default() };
    let args = [0, &raw mut attributes as usize, 0, 0, 0, 0];
    // SAFETY: the kernel reads the attributes, whose size they state.
    let _ = unsafe { os::syscall(libc::SYS_sched_setattr, args) };
}

/// `struct sched_attr`, version 0. Policy SCHED_OTHER.
#[derive(Default)]
#[repr(C)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// How long the monitor pauses.
struct Pace {
    pause: u64,
    quiet: u32,
    /// Since when all processors have been idle.
    idle_since: Option<u64>,
    /// The next pause only.
    is_short_once: bool,
    /// When a processor last changed hands or was given goroutines; 0 if none has.
    needed_at: u64,
    /// The last pause was ended by somebody. The next one ends with the next timer then, poller or
    /// not: otherwise whoever comes out of the poller next would have to call again.
    was_called: bool,
    /// Nobody waits for this thread's look at the timers that are due.
    timers_are_seen_to: bool,
}

impl Pace {
    const fn new() -> Pace {
        Pace {
            pause: PAUSE_MIN_NS,
            quiet: 0,
            idle_since: None,
            is_short_once: false,
            needed_at: 0,
            was_called: false,
            timers_are_seen_to: false,
        }
    }
}

impl Pace {
    /// The end of the pause, and the time of a timer that ends it, if that is earlier.
    fn pause_until(&self) -> (u64, u64) {
        let pause = match () {
            () if self.is_short_once => self.pause.min(PAUSE_PENDING_NS),
            () if network::is_alone() => self.pause.min(PAUSE_POLLING_NS),
            () => self.pause,
        };
        let until = os::monotonic_ns() + pause;
        if SCHEDULER.is_polled() && !self.was_called {
            return (until, u64::MAX);
        }
        // One that is due already was seen to.
        let least = if self.timers_are_seen_to { PAUSE_SEEN_TO_NS } else { PAUSE_MIN_NS };
        (until, idle::next_deadline().max(os::monotonic_ns() + least))
    }

    fn adapt(&mut self, found: Found, now: u64, somebody_rests: bool) {
        self.is_short_once = matches!(found, Found::Pending | Found::Placed);
        if matches!(found, Found::Placed | Found::HandOff) {
            self.needed_at = now;
        }
        match found {
            Found::HandOff => (self.quiet, self.pause) = (0, PAUSE_MIN_NS),
            Found::Pending | Found::Placed => {}
            Found::Stuck(longest) => self.slow_down(longest.min(PAUSE_WANTED_NS)),
            Found::Nothing if somebody_rests => self.slow_down(PAUSE_WANTED_NS),
            Found::Nothing => self.slow_down(self.longest_pause(now)),
        }
        // ORDERING: Relaxed; see `note_call`.
        IS_SLOW.store(self.pause > 4 * PAUSE_MIN_NS, Relaxed);
    }

    fn slow_down(&mut self, longest: u64) {
        self.quiet += 1;
        if self.quiet > PATIENCE {
            let longest = longest.min(start::slice_ns() / 2).max(PAUSE_MIN_NS);
            self.pause = (self.pause * 2).min(longest);
        }
    }

    fn longest_pause(&self, now: u64) -> u64 {
        if netpoll::has_files() && !SCHEDULER.are_all_unused() {
            return PAUSE_WANTED_NS;
        }
        let is_wanted = SCHEDULER.processors().any(|p| !p.ring.is_empty());
        longest_pause(is_wanted, self.needed_at, now)
    }
}

/// How long the pause grows, with goroutines that wait for a processor or none, where this thread was last
/// needed at `needed_at`, or never (0).
fn longest_pause(is_wanted: bool, needed_at: u64, now: u64) -> u64 {
    let was_needed = needed_at != 0 && now.saturating_sub(needed_at) < LATELY_NS;
    match (is_wanted, was_needed) {
        (false, _) => PAUSE_MAX_NS,
        (true, true) => PAUSE_WANTED_NS,
        (true, false) => PAUSE_UNNEEDED_NS,
    }
}

/// All processors are idle: sleeps until one is not, or until it is time to give memory back.
fn sleep_deeply() {
    BELL.announce();
    // ORDERING: Relaxed; see `look_no_later_than`.
    NEXT_LOOK.store(u64::MAX, Relaxed);
    if SCHEDULER.are_all_unused() {
        match background::next_look() {
            u64::MAX => PARKER.sleep(),
            until => drop(PARKER.sleep_until(until)),
        }
    }
    BELL.withdraw();
}

#[cfg(test)]
mod tests {
    use super::{LATELY_NS, PAUSE_MAX_NS, PAUSE_UNNEEDED_NS, PAUSE_WANTED_NS, longest_pause};

    #[test]
    fn it_pauses_longer_where_it_was_not_needed_lately() {
        let at = 5_000_000_000;
        assert_eq!(longest_pause(true, 0, at), PAUSE_UNNEEDED_NS);
        assert_eq!(longest_pause(true, at, at), PAUSE_WANTED_NS);
        assert_eq!(longest_pause(true, at, at + LATELY_NS - 1), PAUSE_WANTED_NS);
        assert_eq!(longest_pause(true, at, at + LATELY_NS), PAUSE_UNNEEDED_NS);
        assert_eq!(longest_pause(false, at, at), PAUSE_MAX_NS);
    }
}
