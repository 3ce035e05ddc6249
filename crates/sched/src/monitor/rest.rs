//! Whether processors should rest (`rest`): what the kernel gave the machines lately.
//!
//! Every 20 ms while all processors are in use it reads how long their threads ran, and, if that is
//! less than one CPU per thread, how long they were ready and waited for one. Two machines that got one
//! CPU between them twice in a row, and went from goroutine to goroutine all the time, are made one: if
//! that one does not wait for its CPU it has as much as both had. So nothing is lost by the rest; and if
//! it does wait, since others want that CPU as well and two threads get more of it than one, the rest
//! ends and the next one comes later, twice as late each time.
//!
//! A rest ends as well when its machines run a quarter less than all did before, since they block in
//! calls, or there is less to do; when one goroutine has computed for long while others wait; when some
//! are to begin on a certain node; and after half a second, to see whether there are CPUs now, or twice
//! that time, up to two seconds, while there were none.
//!
//! The kernel counts what a thread has waited when it gets its CPU, and a tick late at that: enough for
//! 20 ms, not for less. Where it doesn't say (`/proc` is missing), nobody rests.

use super::Noted;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{chaos, idle, near, rest};

/// How long the kernel is watched before each decision.
const WINDOW_NS: u64 = 20_000_000;
/// What machines may have run beyond so many whole CPUs, and these still are enough: one part in so
/// many.
const SLACK: u64 = 8;
/// Goroutines that take longer than a millisecond each use CPUs better than they wait for each other.
const ROUNDS_MIN: u64 = 20;
/// How long a rest lasts until it is tried without, at first and at last.
const REST_MIN_NS: u64 = 500_000_000;
const REST_MAX_NS: u64 = 2_000_000_000;
/// Who runs less so soon after the beginning of a rest does so because of it.
const EARLY_NS: u64 = 100_000_000;
/// How long after a rest that did no good there is another one, at first and at last.
const AGAIN_MIN_NS: u64 = 100_000_000;
const AGAIN_MAX_NS: u64 = 10_000_000_000;
/// A goroutine that computes for so long while others wait ends a rest. Longer than the kernel's
/// slices (2.8 ms at most unless somebody has set them), since whoever is put off looks the same.
const COMPUTES_NS: u64 = 3_000_000;

/// What the kernel gave a machine's thread until the last look. Monitor only.
#[derive(Debug, Default)]
pub(crate) struct Share {
    ran: Noted,
    waited: Noted,
    /// The number of that look.
    look: Noted,
}

/// What the machines that had processors at both ends of a window got in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    length: u64,
    /// How many these were.
    machines: u64,
    ran: u64,
    waited: u64,
    /// How many rounds the slowest of their processors has made.
    rounds: u64,
}

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Nothing,
    /// So many machines are to share the work.
    Run(u64),
    /// All of them.
    RunAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All run. How many windows in a row said that fewer would do.
    Full { said: u32 },
    /// Fewer are to run.
    Asked { machines: u64 },
    /// Fewer run, until then. How many windows in a row were poor.
    Rest { machines: u64, until: u64, poor: u32 },
}

/// The decisions, without the looks.
#[derive(Debug)]
struct Judge {
    phase: Phase,
    /// No rest before.
    not_before: u64,
    again_ns: u64,
    rest_ns: u64,
    /// What all ran before the rest, in thousandths of a CPU.
    before: u64,
}

impl Judge {
    const fn new() -> Judge {
        Judge {
            phase: Phase::Full { said: 0 },
            not_before: 0,
            again_ns: AGAIN_MIN_NS,
            rest_ns: REST_MIN_NS,
            before: 0,
        }
    }

    fn rests(&self) -> bool {
        !matches!(self.phase, Phase::Full { .. })
    }

    /// Whether there is no rest for so long that what is seen now says nothing then.
    fn pauses(&self, now: u64) -> bool {
        !self.rests() && now + 2 * WINDOW_NS < self.not_before
    }

    /// Whether it wants to know what threads have waited.
    fn is_suspicious(&self) -> bool {
        self.phase != Phase::Full { said: 0 }
    }

    /// Whether those that are to rest have had no time yet to come to it.
    fn asks(&self) -> bool {
        matches!(self.phase, Phase::Asked { .. })
    }

    /// At the end of a window, with `procs` processors in service of which `resting` rest.
    fn decide(&mut self, now: u64, procs: u64, resting: u64, window: Window) -> Order {
        match self.phase {
            Phase::Full { .. } if now < self.not_before => Order::Nothing,
            Phase::Full { said } => self.consider(procs, window, said),
            Phase::Asked { machines } if procs - resting != machines => self.fail(now),
            Phase::Asked { machines } => {
                self.phase = Phase::Rest { machines, until: now + self.rest_ns, poor: 0 };
                Order::Nothing
            }
            Phase::Rest { until, .. } if now >= until => {
                self.rest_ns = (self.rest_ns * 2).min(REST_MAX_NS);
                self.end()
            }
            Phase::Rest { machines, .. } if procs - resting != machines => self.give_up(now),
            Phase::Rest { machines, until, poor } => {
                let is_poor = window.is_poor(machines, self.before);
                if is_poor && poor > 0 {
                    // What is less from the beginning on is less because of the rest.
                    let is_early = now + self.rest_ns < until + EARLY_NS;
                    let is_worse = window.have_waited() || is_early;
                    return if is_worse { self.fail(now) } else { self.end() };
                }
                self.phase = Phase::Rest { machines, until, poor: u32::from(is_poor) };
                Order::Nothing
            }
        }
    }

    fn consider(&mut self, procs: u64, window: Window, said: u32) -> Order {
        // Who was not there all the time says nothing.
        if window.machines < procs {
            self.phase = Phase::Full { said: 0 };
            return Order::Nothing;
        }
        let enough = window.cpus_used();
        let is_shared = enough < procs && window.waited >= window.length / 2;
        if !is_shared || window.rounds < ROUNDS_MIN {
            self.phase = Phase::Full { said: 0 };
            self.rest_ns = REST_MIN_NS;
            return Order::Nothing;
        }
        if said == 0 {
            self.phase = Phase::Full { said: 1 };
            return Order::Nothing;
        }
        self.phase = Phase::Asked { machines: enough };
        self.before = window.share();
        Order::Run(enough)
    }

    /// Others have ended it, who wanted the processors: neither good nor bad.
    fn give_up(&mut self, now: u64) -> Order {
        self.phase = Phase::Full { said: 0 };
        self.not_before = now + self.again_ns;
        Order::RunAll
    }

    /// It was worth it, and is over. That one window says so is enough for the next one.
    fn end(&mut self) -> Order {
        self.phase = Phase::Full { said: 1 };
        self.again_ns = AGAIN_MIN_NS;
        Order::RunAll
    }

    /// They do worse than all.
    fn fail(&mut self, now: u64) -> Order {
        self.phase = Phase::Full { said: 0 };
        self.rest_ns = REST_MIN_NS;
        self.not_before = now + self.again_ns;
        self.again_ns = (self.again_ns * 2).min(AGAIN_MAX_NS);
        Order::RunAll
    }
}

impl Window {
    /// How many CPUs would have been enough for what they ran.
    fn cpus_used(&self) -> u64 {
        (self.ran.saturating_sub(self.length / SLACK)).div_ceil(self.length).max(1)
    }

    /// What they ran, in thousandths of a CPU.
    fn share(&self) -> u64 {
        self.ran * 1000 / self.length
    }

    /// Whether `machines` machines at work, where more ran `before`, do not have what they want of the
    /// CPUs, or want less.
    fn is_poor(&self, machines: u64, before: u64) -> bool {
        self.have_waited() || self.machines < machines || self.share() < before * 3 / 4
    }

    /// Whether they were put off.
    fn have_waited(&self) -> bool {
        self.waited > self.machines.max(1) * self.length / 4
    }
}

/// The monitor's part: it looks, and does what is decided.
#[derive(Debug)]
pub(super) struct Rest {
    judge: Judge,
    /// When the window began, and the number of the look at its beginning.
    since: u64,
    look: u64,
    /// Whether that look was at what threads have waited, too, and whether the next one is.
    has_seen_waits: bool,
    will_see_waits: bool,
}

impl Rest {
    pub(super) const fn new() -> Rest {
        Rest {
            judge: Judge::new(),
            since: 0,
            look: 0,
            has_seen_waits: false,
            will_see_waits: false,
        }
    }

    /// Whether some processor rests: this thread is to look often then.
    pub(super) fn somebody_rests(&self) -> bool {
        self.judge.rests()
    }

    /// Under `REVOKER`, while the world is not stopped.
    pub(super) fn look(&mut self, now: u64) {
        let procs = SCHEDULER.procs();
        let may_rest = SCHEDULER.settled.get().is_some_and(|settled| settled.rests);
        if procs == 1 || !may_rest {
            self.judge.phase = Phase::Full { said: 0 };
            return;
        }
        if let Some(count) = chaos::puts_to_rest(procs) {
            rest::end();
            if count > 0 {
                rest::ask(count as usize);
            }
            return;
        }
        if SCHEDULER.does_any_rest() && !self.judge.asks() && somebody_waits(now) {
            self.judge.fail(now);
            return rest::end();
        }
        let length = now - self.since;
        if length < WINDOW_NS {
            return;
        }
        let is_of_use = self.judge.rests() || SCHEDULER.idle_count() == 0;
        if is_of_use && !self.judge.pauses(now) {
            let window = self.close_window(now);
            // A look that came late says more of this thread than of the others.
            if length < 2 * WINDOW_NS
                && let Some(window) = window
            {
                self.act(now, window);
            }
        } else {
            // What is left over has no use for a rest, or there is none for some time.
            self.since = now;
            self.look += 2;
            self.has_seen_waits = false;
            self.judge.phase = Phase::Full { said: 0 };
        }
    }

    fn act(&mut self, now: u64, window: Window) {
        let procs = u64::from(SCHEDULER.procs());
        let resting = SCHEDULER.resting_count() as u64;
        match self.judge.decide(now, procs, resting, window) {
            Order::Nothing => {}
            Order::Run(machines) => rest::ask((procs - machines) as usize),
            Order::RunAll => rest::end(),
        }
    }

    /// What the machines got since the look before; `None` if it is not known what they have waited,
    /// and need not be. The next window begins.
    fn close_window(&mut self, now: u64) -> Option<Window> {
        let length = now - self.since;
        let mut window = Window { length, machines: 0, ran: 0, waited: 0, rounds: u64::MAX };
        let sees_waits = self.judge.is_suspicious() || self.will_see_waits;
        for p in SCHEDULER.processors() {
            let rounds = p.slice.rounds(p);
            let Some(machine) = p.machine() else { continue };
            window.rounds = window.rounds.min(rounds);
            let share = &machine.share;
            let ran = machine.eyes.cpu_time().unwrap_or(0);
            let waited = if sees_waits { machine.eyes.waited() } else { Some(0) };
            let is_known = share.look.replace(self.look + 1) == self.look;
            let ran = ran.saturating_sub(share.ran.replace(ran));
            let before = share.waited.replace(waited.unwrap_or(0));
            if let (true, Some(waited)) = (is_known, waited) {
                window.machines += 1;
                window.ran += ran;
                window.waited += waited.saturating_sub(before);
            }
        }
        self.since = now;
        self.look += 1;
        self.will_see_waits = window.cpus_used() < window.machines;
        let had_seen = std::mem::replace(&mut self.has_seen_waits, sees_waits);
        (sees_waits && had_seen).then_some(window)
    }
}

/// Whether goroutines wait for one that has computed for long, or in a node's queue, which others than
/// that node's processors look at last.
fn somebody_waits(now: u64) -> bool {
    let computes = |p: &Processor| p.machine().is_some() && p.slice.lasted(p, now) >= COMPUTES_NS;
    near::is_work_in_sight() || SCHEDULER.processors().any(computes) && idle::is_work_in_sight()
}

#[cfg(test)]
mod tests {
    use super::{
        AGAIN_MAX_NS, AGAIN_MIN_NS, Judge, Order, REST_MAX_NS, REST_MIN_NS, WINDOW_NS, Window,
    };

    /// What each of some machines got of a window, in percent.
    fn window(shares: &[(u64, u64)]) -> Window {
        let sum = |part: fn(&(u64, u64)) -> u64| shares.iter().map(part).sum::<u64>();
        Window {
            length: WINDOW_NS,
            machines: shares.len() as u64,
            ran: sum(|share| share.0) * WINDOW_NS / 100,
            waited: sum(|share| share.1) * WINDOW_NS / 100,
            rounds: 1000,
        }
    }

    /// Two machines that share a CPU, and one that has it alone.
    const SHARED: [(u64, u64); 2] = [(49, 51), (51, 49)];
    const ALONE: [(u64, u64); 1] = [(97, 3)];

    /// Decides in one window after the other, for two processors.
    struct Watched {
        judge: Judge,
        now: u64,
        resting: u64,
    }

    impl Watched {
        fn new() -> Watched {
            Watched { judge: Judge::new(), now: 1_000_000_000, resting: 0 }
        }

        fn see(&mut self, shares: &[(u64, u64)]) -> Order {
            self.see_window(window(shares))
        }

        fn see_window(&mut self, window: Window) -> Order {
            self.now += WINDOW_NS;
            let order = self.judge.decide(self.now, 2, self.resting, window);
            match order {
                Order::Nothing => {}
                Order::Run(machines) => self.resting = 2 - machines,
                Order::RunAll => self.resting = 0,
            }
            order
        }

        /// Until the next order: which, and after how long.
        fn see_until_order(&mut self, shares: &[(u64, u64)]) -> (Order, u64) {
            let since = self.now;
            loop {
                match self.see(shares) {
                    Order::Nothing => assert!(self.now < since + 100_000_000_000, "no order"),
                    order => return (order, self.now - since),
                }
            }
        }
    }

    #[test]
    fn two_that_share_a_cpu_are_made_one_for_ever_longer() {
        let mut watched = Watched::new();
        assert_eq!(watched.see_until_order(&SHARED), (Order::Run(1), 2 * WINDOW_NS));
        for rest_ns in [REST_MIN_NS, 2 * REST_MIN_NS, REST_MAX_NS, REST_MAX_NS] {
            let (order, took) = watched.see_until_order(&ALONE);
            assert_eq!(order, Order::RunAll);
            assert!((rest_ns..rest_ns + 3 * WINDOW_NS).contains(&took), "{took}");
            assert_eq!(watched.see(&SHARED), Order::Run(1));
        }
    }

    #[test]
    fn nobody_rests_who_has_a_cpu_or_does_not_want_it() {
        // Both have one; one is gone half of the time; they sleep much; one was not there.
        let cases: [&[(u64, u64)]; 4] =
            [&[(97, 3), (96, 4)], &[(97, 3), (50, 50)], &[(40, 10), (40, 10)], &[(49, 51)]];
        for case in cases {
            let mut watched = Watched::new();
            (0..100).for_each(|_| assert_eq!(watched.see(case), Order::Nothing, "{case:?}"));
        }
        // They compute.
        let mut watched = Watched::new();
        let computing = Window { rounds: 2, ..window(&SHARED) };
        (0..100).for_each(|_| assert_eq!(watched.see_window(computing), Order::Nothing));
        // One window says nothing.
        let mut watched = Watched::new();
        for _ in 0..100 {
            assert_eq!(watched.see(&SHARED), Order::Nothing);
            assert_eq!(watched.see(&[(97, 3), (96, 4)]), Order::Nothing);
        }
    }

    #[test]
    fn a_rest_that_does_no_good_ends_and_is_tried_ever_later() {
        // Others want that CPU, and get as much as the one that is left.
        let mut watched = Watched::new();
        let mut before = 0;
        for _ in 0..12 {
            let (order, waited) = watched.see_until_order(&SHARED);
            assert_eq!(order, Order::Run(1));
            let least = (before + before / 2).min(AGAIN_MAX_NS);
            assert!(waited >= least, "{waited} after {before}");
            before = waited;
            let (order, took) = watched.see_until_order(&[(50, 50)]);
            assert_eq!(order, Order::RunAll);
            assert!(took <= 3 * WINDOW_NS, "{took}");
        }
        assert!(before > AGAIN_MAX_NS / 2, "{before}");
    }

    #[test]
    fn a_rest_ends_when_there_is_little_to_do() {
        for calm in [&[(30, 0)][..], &[]] {
            let mut watched = Watched::new();
            watched.see_until_order(&SHARED);
            (0..10).for_each(|_| assert_eq!(watched.see(&ALONE), Order::Nothing));
            let (order, took) = watched.see_until_order(calm);
            assert_eq!((order, took), (Order::RunAll, 2 * WINDOW_NS));
            // And begins again as soon as there is more.
            assert_eq!(watched.see(&SHARED), Order::Run(1));
        }
    }

    /// One machine blocks where another one could have run.
    #[test]
    fn a_rest_in_which_less_is_run_is_tried_ever_later() {
        let mut watched = Watched::new();
        for pause in [0, AGAIN_MIN_NS, 2 * AGAIN_MIN_NS, 4 * AGAIN_MIN_NS] {
            let (order, waited) = watched.see_until_order(&SHARED);
            assert_eq!(order, Order::Run(1));
            assert!(waited >= pause, "{waited} after {pause}");
            let (order, took) = watched.see_until_order(&[(60, 0)]);
            assert_eq!((order, took), (Order::RunAll, 3 * WINDOW_NS));
        }
    }

    /// The world was stopped, or somebody urgent was woken while all others were in calls.
    #[test]
    fn a_rest_that_others_end_says_nothing() {
        let mut watched = Watched::new();
        for _ in 0..3 {
            watched.see_until_order(&SHARED);
            (0..3).for_each(|_| assert_eq!(watched.see(&ALONE), Order::Nothing));
            watched.resting = 0;
            assert_eq!(watched.see(&SHARED), Order::RunAll);
            let (order, waited) = watched.see_until_order(&SHARED);
            assert_eq!(order, Order::Run(1));
            assert!((AGAIN_MIN_NS..AGAIN_MIN_NS + 3 * WINDOW_NS).contains(&waited), "{waited}");
            watched.resting = 0;
            watched.judge = Judge::new();
        }
    }

    #[test]
    fn who_does_not_come_to_rest_is_left_alone() {
        let mut watched = Watched::new();
        watched.see_until_order(&SHARED);
        watched.resting = 0;
        assert_eq!(watched.see(&SHARED), Order::RunAll);
    }
}
