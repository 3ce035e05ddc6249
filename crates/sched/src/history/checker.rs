//! Checks a history against the scheduler's promises.
//!
//! * P1. A goroutine is in one place: its transitions follow each other as its states allow, and the
//!   machine that runs it makes them. So each park has one ready, each ready one start, and nothing
//!   runs twice.
//! * P2. A processor is in one place: among the idle, at rest, on its way, or held by one machine; a machine
//!   holds one, and runs goroutines only with it, unless it was taken from it in a blocking call.
//! * P3. Never more goroutines run than there are processors, those not counted whose machine lost
//!   its processor in a call and has not come back into the runtime.
//! * P4. A search looks at every [`Source`] in Go's order, until it finds a goroutine, and runs that
//!   one; a machine gives its processor up only after it has looked at all of them. Each 61st round
//!   of a processor is a search that looks at the global queue first (and before it at the ring's
//!   head, if the global queue was preferred to that one the last time).
//! * P5. A goroutine in a queue and an idle processor coexist only while somebody is about to mend
//!   that: a machine is inside the runtime, a processor is on its way to one, a thread that is no
//!   machine has not finished what it began, or the bell of the machine in the poller has been rung
//!   or is being rung.
//!   In other words, at the latest when the operation that published the goroutine is left, somebody
//!   is awake to take it. One that is in a next slot may also be left to a machine that keeps a
//!   lookout, and looks at it after a short time.
//! * P6. Whoever makes a goroutine runnable, or moves runnable ones where others could not see them,
//!   considers to wake a machine before it leaves the runtime, unless somebody has taken that
//!   goroutine already, or may just have stolen it. With one processor there is nobody to wake. (P5
//!   says that it works; this one, that no place relies on luck.)
//! * P7. At the end nothing is left: every goroutine has ended.

mod places;

use self::places::{At, Goroutines, Machine, Processors};
use super::recorder::{NO_PROCESSOR, OUTSIDE, Record};
use super::{Kind, Source};
use crate::switch::FAIRNESS_ROUNDS;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// What is wrong with a history, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The promise, as in the module's page.
    pub promise: &'static str,
    /// What was found.
    pub what: String,
    /// The number of the record.
    pub at: usize,
    /// The records before it.
    pub before: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at record {}: {}\n{}", self.promise, self.at, self.what, self.before)
    }
}

impl std::error::Error for Broken {}

macro_rules! summary {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// How often things happened in a history.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Summary {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Summary {
            /// The numbers with their names.
            #[must_use]
            pub fn figures(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

summary! {
    /// Records.
    records,
    /// Goroutines made.
    created,
    /// Starts and resumptions.
    runs,
    /// Those without a search before.
    direct_runs,
    /// Waits.
    parks,
    /// Goroutines that gave way, or were made to.
    yields,
    /// Declared calls.
    calls,
    /// First runs that waited for a stack.
    fiber_waits,
    /// Searches.
    searches,
    /// Searches whose round is the global queue's.
    fairness_searches,
    /// Found in an urgent list.
    found_urgent,
    /// Found at the ring's head, in the global queue's round, since that was preferred before.
    found_ring_passed,
    /// Found in the global queue, in its round.
    found_global_first,
    /// Found at the ring's head, in the same round.
    found_ring_first,
    /// Found in the own queue.
    found_local,
    /// Found in the global queue otherwise.
    found_global,
    /// Found in other processors' queues.
    found_stolen,
    /// Found in the network.
    found_network,
    /// Searches that found nothing.
    found_nothing,
    /// Sleeps of machines.
    sleeps,
    /// Short sleeps of machines that look at next slots again.
    lookouts,
    /// Processors put to rest.
    rests,
    /// Processors taken from machines in calls.
    taken,
    /// Records at which a goroutine was runnable and a processor idle.
    coexisting,
    /// The longest run of such records.
    coexisting_longest,
    /// The most goroutines that ran at once.
    most_running,
}

/// Checks `records`, which begin with the process; `procs` is the number of processors.
pub(crate) fn check(records: &[Record], procs: usize) -> Result<Summary, Broken> {
    let mut checker = Checker::new(procs);
    for (at, record) in records.iter().enumerate() {
        if let Err((promise, what)) = checker.step(*record) {
            let first = at.saturating_sub(60);
            let line = |i: usize| format!("{i:8} {}\n", describe(&records[i]));
            let mut before: String = (first..=at).map(line).collect();
            if let Some(g) = checker.goroutines.any_queued() {
                before += &format!("-- all of goroutine {g}\n");
                before.extend((0..at).filter(|i| records[*i].g == g).map(line));
            }
            return Err(Broken { promise, what, at, before });
        }
    }
    match checker.goroutines.left() {
        Some((g, place)) => Err(Broken {
            promise: "P7",
            what: format!("goroutine {g} is left, {place:?}"),
            at: records.len(),
            before: String::new(),
        }),
        None => Ok(Summary { records: records.len() as u64, ..checker.summary }),
    }
}

fn describe(r: &Record) -> String {
    let actor = match r.actor & OUTSIDE {
        0 => format!("m{}", r.actor),
        _ => format!("thread {}", r.actor & !OUTSIDE),
    };
    let p = if r.p == NO_PROCESSOR { String::new() } else { format!(" p{}", r.p) };
    let g = if r.g == 0 { String::new() } else { format!(" g{}", r.g) };
    format!("{actor}{p}{g} {:?} {}", r.kind, r.detail)
}

/// The promise that is broken, and how.
type Fault = (&'static str, String);

struct Checker {
    procs: usize,
    goroutines: Goroutines,
    machines: HashMap<u32, Machine>,
    processors: Processors,
    /// How many machines are inside the runtime.
    inside: usize,
    /// Threads that are no machines and have not finished what they began.
    outside: HashSet<u32>,
    /// Those that have goroutines in their hands.
    holding: HashSet<u32>,
    bell: Bell,
    /// The machine that keeps a lookout.
    lookout: Option<u32>,
    /// What was put into each processor's next slot last.
    nexts: HashMap<u32, u64>,
    /// How many goroutines run on machines that have their processor.
    running: usize,
    /// How many records in a row saw a goroutine runnable and a processor idle.
    coexisting: u64,
    summary: Summary,
}

/// Whether the machine in the poller is on its way.
#[derive(Default)]
struct Bell {
    /// The last poll that the bell was rung for.
    rung: u32,
    /// The last poll that has ended.
    ended: u32,
    /// Threads that are ringing. Who finds the bell claimed relies on one of them.
    ringing: HashSet<u32>,
}

impl Bell {
    fn is_rung(&self) -> bool {
        self.rung > self.ended || !self.ringing.is_empty()
    }
}

impl Checker {
    fn new(procs: usize) -> Checker {
        Checker {
            procs,
            goroutines: Goroutines::default(),
            machines: HashMap::new(),
            processors: Processors::default(),
            inside: 0,
            outside: HashSet::new(),
            holding: HashSet::new(),
            bell: Bell::default(),
            lookout: None,
            nexts: HashMap::new(),
            running: 0,
            coexisting: 0,
            summary: Summary::default(),
        }
    }

    fn step(&mut self, r: Record) -> Result<(), Fault> {
        self.enter_or_leave(r);
        self.think_of_others(r)?;
        match r.kind {
            Kind::Created | Kind::Ready | Kind::Yielded | Kind::Park | Kind::Exit => {
                self.change(r)?;
            }
            Kind::EnterCall | Kind::ExitCall | Kind::WaitFiber | Kind::GotFiber => {
                self.change(r)?
            }
            Kind::Run => self.run(r)?,
            Kind::Search => self.search(r)?,
            Kind::Tried => self.tried(r)?,
            Kind::Idle | Kind::Rest | Kind::Transit | Kind::Acquired | Kind::Retired => {
                self.move_processor(r)?
            }
            Kind::Lost => self.lose(r),
            Kind::Ringing => drop(self.bell.ringing.insert(r.actor)),
            Kind::Rung => {
                self.bell.ringing.remove(&r.actor);
                self.bell.rung = self.bell.rung.max(r.detail);
            }
            Kind::Lookout => {
                self.lookout = Some(r.actor);
                self.summary.lookouts += 1;
            }
            Kind::Next => {
                self.forget_next(r.g);
                self.nexts.insert(r.p, r.g);
            }
            Kind::PollEnd => {
                self.bell.ended = self.bell.ended.max(r.detail);
                self.end_lookout(r.actor);
            }
            Kind::Sleep => self.summary.sleeps += 1,
            Kind::Begun => drop(self.holding.insert(r.actor)),
            Kind::Finished => drop(self.holding.remove(&r.actor)),
            Kind::Awake => self.end_lookout(r.actor),
            Kind::Left | Kind::Done => {}
            Kind::Moved | Kind::Considered => {}
        }
        self.count_running()?;
        self.look_at_coexistence()
    }

    fn machine(&mut self, actor: u32) -> &mut Machine {
        self.machines.entry(actor).or_default()
    }

    /// Who is about to do something after this record.
    fn enter_or_leave(&mut self, r: Record) {
        if r.actor & OUTSIDE != 0 {
            match r.kind {
                Kind::Created | Kind::Ready | Kind::GotFiber | Kind::Idle => {
                    self.outside.insert(r.actor);
                }
                Kind::Done => drop(self.outside.remove(&r.actor)),
                _ => {}
            }
            return;
        }
        let stays = !matches!(r.kind, Kind::Left | Kind::Sleep);
        let was = std::mem::replace(&mut self.machine(r.actor).is_inside, stays);
        self.inside = self.inside + usize::from(stays) - usize::from(was);
    }

    /// P6.
    fn think_of_others(&mut self, r: Record) -> Result<(), Fault> {
        if r.actor & OUTSIDE != 0 || self.procs == 1 {
            return Ok(());
        }
        // A thief notes what it has taken a moment after it has taken it, and may lose its CPU in
        // between.
        let may_be_stolen = self.machines.values().any(Machine::is_stealing);
        let machine = self.machine(r.actor);
        match r.kind {
            Kind::Left if may_be_stolen && !machine.has_moved => machine.published.clear(),
            Kind::Created | Kind::Ready | Kind::Yielded => machine.published.push(r.g),
            Kind::Run | Kind::Tried => {
                // Whoever has it, it is taken care of.
                self.machines.values_mut().for_each(|m| m.published.retain(|g| *g != r.g));
            }
            Kind::Moved => machine.has_moved = true,
            Kind::Considered => {
                machine.published.clear();
                machine.has_moved = false;
            }
            Kind::Left if machine.has_moved || !machine.published.is_empty() => {
                let what = format!("m{} wakes nobody for {:?}", r.actor, machine.published);
                return Err(("P6", what));
            }
            _ => {}
        }
        Ok(())
    }

    /// P1: any transition but a start.
    fn change(&mut self, r: Record) -> Result<(), Fault> {
        let from = self.goroutines.at(r.g);
        let here = At::Running(r.actor);
        let (wanted, to) = match r.kind {
            Kind::Created => (At::Nowhere, At::Queued),
            Kind::Ready => (At::Waiting, At::Queued),
            Kind::Yielded => (here, At::Queued),
            Kind::Park => (here, At::Waiting),
            Kind::Exit => (here, At::Ended),
            Kind::EnterCall => (here, At::InCall(r.actor)),
            Kind::ExitCall => (At::InCall(r.actor), here),
            Kind::WaitFiber => (At::Queued, At::WithoutFiber),
            _ => (At::WithoutFiber, At::Queued),
        };
        if from != wanted {
            return Err(("P1", format!("goroutine {} is {from:?}, not {wanted:?}", r.g)));
        }
        self.goroutines.put(r.g, to);
        if matches!(r.kind, Kind::Yielded | Kind::Park | Kind::Exit) {
            self.machine(r.actor).current = None;
        }
        match r.kind {
            Kind::Created => self.summary.created += 1,
            Kind::Yielded => self.summary.yields += 1,
            Kind::Park => self.summary.parks += 1,
            Kind::EnterCall => self.summary.calls += 1,
            Kind::WaitFiber => {
                self.summary.fiber_waits += 1;
                self.machine(r.actor).forget_found(r.g)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// P1, P2 and P4 at a goroutine's start.
    fn run(&mut self, r: Record) -> Result<(), Fault> {
        let from = self.goroutines.at(r.g);
        if from != At::Queued {
            return Err(("P1", format!("goroutine {} starts, and is {from:?}", r.g)));
        }
        let holder = self.processors.holder(r.p);
        let machine = self.machine(r.actor);
        if let Some(other) = machine.current {
            return Err(("P1", format!("m{} runs goroutine {other} already", r.actor)));
        }
        if machine.processor != Some(r.p) || holder != Some(r.actor) {
            let what =
                format!("m{} has {:?}, and p{} has {holder:?}", r.actor, machine.processor, r.p);
            return Err(("P2", what));
        }
        machine.current = Some(r.g);
        let is_first_look = r.detail.is_multiple_of(FAIRNESS_ROUNDS);
        let is_direct = machine.end_search(r.g, is_first_look)?;
        self.goroutines.put(r.g, At::Running(r.actor));
        self.forget_next(r.g);
        self.summary.runs += 1;
        self.summary.direct_runs += u64::from(is_direct);
        Ok(())
    }

    fn search(&mut self, r: Record) -> Result<(), Fault> {
        let is_fairness = (r.detail + 1).is_multiple_of(FAIRNESS_ROUNDS);
        self.machine(r.actor).begin_search(is_fairness)?;
        self.summary.searches += 1;
        self.summary.fairness_searches += u64::from(is_fairness);
        Ok(())
    }

    fn tried(&mut self, r: Record) -> Result<(), Fault> {
        let source = self.machine(r.actor).tried(r.detail, r.g)?;
        let count = match source {
            _ if r.g == 0 => return Ok(()),
            Source::Timers => return Err(("P4", "a timer gives no goroutine".into())),
            Source::Urgent => &mut self.summary.found_urgent,
            Source::RingPassed => &mut self.summary.found_ring_passed,
            Source::GlobalFirst => &mut self.summary.found_global_first,
            Source::RingFirst => &mut self.summary.found_ring_first,
            Source::Local => &mut self.summary.found_local,
            Source::Global => &mut self.summary.found_global,
            Source::NetworkFirst | Source::Network => &mut self.summary.found_network,
            Source::Steal => &mut self.summary.found_stolen,
        };
        *count += 1;
        Ok(())
    }

    /// P2, and P4 for the processor that is given up.
    fn move_processor(&mut self, r: Record) -> Result<(), Fault> {
        let holder = self.processors.holder(r.p);
        let gives = r.actor & OUTSIDE == 0 && holder == Some(r.actor);
        match r.kind {
            Kind::Acquired => {
                let machine = self.machine(r.actor);
                if let Some(other) = machine.processor.filter(|other| *other != r.p) {
                    return Err(("P2", format!("m{} holds p{other} already", r.actor)));
                }
                machine.processor = Some(r.p);
                machine.was_handed_over = true;
            }
            _ if gives => {
                let machine = self.machine(r.actor);
                machine.processor = None;
                if machine.give_up(r.kind)? {
                    self.summary.found_nothing += 1;
                }
            }
            Kind::Transit if holder.is_some() => self.summary.taken += 1,
            _ => {}
        }
        self.summary.rests += u64::from(r.kind == Kind::Rest);
        self.processors.put(r)
    }

    fn lose(&mut self, r: Record) {
        self.machine(r.actor).processor = None;
    }

    /// P3.
    fn count_running(&mut self) -> Result<(), Fault> {
        self.running = (self.machines.iter())
            .filter(|(id, m)| {
                let runs = m.current.is_some_and(|g| self.goroutines.at(g) == At::Running(**id));
                runs && m.processor.is_some_and(|p| self.processors.holder(p) == Some(**id))
            })
            .count();
        self.summary.most_running = self.summary.most_running.max(self.running as u64);
        if self.running > self.procs {
            return Err(("P3", format!("{} goroutines run", self.running)));
        }
        Ok(())
    }

    fn end_lookout(&mut self, actor: u32) {
        if self.lookout == Some(actor) {
            self.lookout = None;
        }
    }

    /// `g` is in no next slot that it was put into before.
    fn forget_next(&mut self, g: u64) {
        self.nexts.retain(|_, other| *other != g);
    }

    /// Whether all that are in queues are in next slots.
    fn are_all_in_next_slots(&self) -> bool {
        let is_queued = |g: &&u64| self.goroutines.at(**g) == At::Queued;
        self.nexts.values().filter(is_queued).count() == self.goroutines.queued()
    }

    /// P5.
    fn look_at_coexistence(&mut self) -> Result<(), Fault> {
        if self.goroutines.queued() == 0 || self.processors.idle() == 0 {
            self.coexisting = 0;
            return Ok(());
        }
        self.coexisting += 1;
        self.summary.coexisting += 1;
        self.summary.coexisting_longest = self.summary.coexisting_longest.max(self.coexisting);
        let is_mended = self.inside > 0
            || self.processors.in_transit() > 0
            || !(self.outside.is_empty() && self.holding.is_empty())
            || self.bell.is_rung()
            || self.lookout.is_some() && self.are_all_in_next_slots();
        if is_mended {
            return Ok(());
        }
        let what = format!(
            "{} goroutines are in queues, {} processors are idle, and nobody is about to change that; \
             one of them is goroutine {:?}",
            self.goroutines.queued(),
            self.processors.idle(),
            self.goroutines.any_queued(),
        );
        Err(("P5", what))
    }
}
