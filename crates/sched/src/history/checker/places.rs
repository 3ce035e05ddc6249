//! Where goroutines, machines and processors are, as far as a history has been read.

use super::{Fault, Kind, Record, Source};
use std::collections::HashMap;

/// Where a goroutine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Not made yet.
    Nowhere,
    /// In a queue, on the way into it, or in the hands of who has just taken it out.
    Queued,
    /// Set aside until there is a stack for it.
    WithoutFiber,
    /// On this machine.
    Running(u32),
    /// On this machine, in a declared call.
    InCall(u32),
    /// In somebody's wait structure.
    Waiting,
    /// Ended.
    Ended,
}

/// All goroutines.
#[derive(Default)]
pub(super) struct Goroutines {
    places: HashMap<u64, At>,
    queued: usize,
}

impl Goroutines {
    pub(super) fn at(&self, g: u64) -> At {
        self.places.get(&g).copied().unwrap_or(At::Nowhere)
    }

    pub(super) fn put(&mut self, g: u64, to: At) {
        let from = self.places.insert(g, to);
        self.queued += usize::from(to == At::Queued);
        self.queued -= usize::from(from == Some(At::Queued));
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn any_queued(&self) -> Option<u64> {
        self.places.iter().find(|(_, at)| **at == At::Queued).map(|(g, _)| *g)
    }

    /// One that has not ended.
    pub(super) fn left(&self) -> Option<(u64, At)> {
        self.places.iter().find(|(_, at)| **at != At::Ended).map(|(g, at)| (*g, *at))
    }
}

/// Where a processor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processor {
    Idle,
    Resting,
    InTransit,
    Held(u32),
    Retired,
}

/// All processors.
#[derive(Default)]
pub(super) struct Processors {
    places: HashMap<u32, Processor>,
    idle: usize,
    in_transit: usize,
}

impl Processors {
    pub(super) fn holder(&self, p: u32) -> Option<u32> {
        match self.places.get(&p) {
            Some(Processor::Held(machine)) => Some(*machine),
            _ => None,
        }
    }

    pub(super) fn idle(&self) -> usize {
        self.idle
    }

    pub(super) fn in_transit(&self) -> usize {
        self.in_transit
    }

    /// P2: the ways that a processor may take.
    pub(super) fn put(&mut self, r: Record) -> Result<(), Fault> {
        let from = self.places.get(&r.p).copied();
        let is_own = from == Some(Processor::Held(r.actor));
        let (to, is_allowed) = match r.kind {
            // A new one, one that was on its way or at rest, or the giver's own.
            Kind::Idle => {
                let is_at_hand = matches!(
                    from,
                    None | Some(Processor::InTransit | Processor::Resting | Processor::Retired)
                );
                (Processor::Idle, is_own || is_at_hand)
            }
            Kind::Rest => (Processor::Resting, is_own),
            Kind::Acquired => {
                (Processor::Held(r.actor), is_own || from == Some(Processor::InTransit))
            }
            Kind::Retired => (Processor::Retired, from == Some(Processor::InTransit)),
            // From the idle, the giver's own, or taken from a machine in a call. Handed on again
            // by who has it in hand already.
            _ => (Processor::InTransit, from.is_some()),
        };
        if !is_allowed {
            return Err(("P2", format!("p{} is {from:?}, and becomes {to:?}", r.p)));
        }
        self.places.insert(r.p, to);
        let is_idle = |at: Option<Processor>| usize::from(at == Some(Processor::Idle));
        let is_under_way = |at: Option<Processor>| usize::from(at == Some(Processor::InTransit));
        self.idle = self.idle + is_idle(Some(to)) - is_idle(from);
        self.in_transit = self.in_transit + is_under_way(Some(to)) - is_under_way(from);
        Ok(())
    }
}

/// A machine.
#[derive(Default)]
pub(super) struct Machine {
    pub(super) is_inside: bool,
    pub(super) processor: Option<u32>,
    pub(super) current: Option<u64>,
    /// What it has made runnable since it last considered to wake somebody.
    pub(super) published: Vec<u64>,
    pub(super) has_moved: bool,
    /// It has a new processor and has not searched with it: its locked goroutine may start.
    pub(super) was_handed_over: bool,
    search: Search,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Search {
    #[default]
    None,
    /// It looks at this source next.
    Under { next: Source, is_fairness: bool },
    /// It has looked at all of them.
    Vain,
    /// It has found this goroutine.
    Found { g: u64, is_fairness: bool },
}

impl Source {
    const ORDER: [Source; 10] = [
        Source::Timers,
        Source::Urgent,
        Source::RingPassed,
        Source::GlobalFirst,
        Source::NetworkFirst,
        Source::RingFirst,
        Source::Local,
        Source::Global,
        Source::Network,
        Source::Steal,
    ];

    /// What comes after it.
    fn next(self, is_fairness: bool) -> Option<Source> {
        let is_due =
            |s: &Source| is_fairness || !(Source::RingPassed..=Source::RingFirst).contains(s);
        Source::ORDER.into_iter().filter(is_due).find(|source| *source > self)
    }
}

impl Machine {
    /// Whether it is looking for something to steal, as far as is noted.
    pub(super) fn is_stealing(&self) -> bool {
        matches!(self.search, Search::Under { next: Source::Steal, .. })
    }

    /// P4: a search begins, after the one before it has ended.
    pub(super) fn begin_search(&mut self, is_fairness: bool) -> Result<(), Fault> {
        if matches!(self.search, Search::Under { .. } | Search::Found { .. }) {
            return Err(("P4", format!("a search begins within another: {:?}", self.search)));
        }
        self.search = Search::Under { next: Source::Timers, is_fairness };
        self.was_handed_over = false;
        Ok(())
    }

    /// P4: a source was looked at; which one.
    pub(super) fn tried(&mut self, number: u32, g: u64) -> Result<Source, Fault> {
        let Search::Under { next, is_fairness } = self.search else {
            return Err(("P4", format!("a look at source {number} in {:?}", self.search)));
        };
        if next as u32 != number {
            return Err(("P4", format!("{next:?} comes next, not source {number}")));
        }
        self.search = match next.next(is_fairness) {
            _ if g != 0 => Search::Found { g, is_fairness },
            Some(next) => Search::Under { next, is_fairness },
            None => Search::Vain,
        };
        Ok(next)
    }

    /// P4: `g` starts. Whether without a search.
    pub(super) fn end_search(&mut self, g: u64, is_fairness_round: bool) -> Result<bool, Fault> {
        let was_handed_over = std::mem::take(&mut self.was_handed_over);
        match std::mem::take(&mut self.search) {
            Search::None | Search::Vain if is_fairness_round && !was_handed_over => {
                Err(("P4", format!("goroutine {g} starts directly in the global queue's round")))
            }
            // Handed over with its processor, if it is locked.
            Search::None | Search::Vain => Ok(true),
            Search::Found { g: found, is_fairness } if found == g => {
                match is_fairness == is_fairness_round {
                    true => Ok(false),
                    false => Err(("P4", format!("goroutine {g} starts in another round"))),
                }
            }
            other => Err(("P4", format!("goroutine {g} starts, and the search is {other:?}"))),
        }
    }

    /// The goroutine that was found has no stack yet.
    pub(super) fn forget_found(&mut self, g: u64) -> Result<(), Fault> {
        match std::mem::take(&mut self.search) {
            Search::Found { g: found, .. } if found == g => Ok(()),
            other => {
                Err(("P4", format!("goroutine {g} is set aside, and the search is {other:?}")))
            }
        }
    }

    /// P4: the machine gives its processor up. Whether since it found nothing.
    pub(super) fn give_up(&mut self, kind: Kind) -> Result<bool, Fault> {
        match std::mem::take(&mut self.search) {
            Search::Vain => Ok(true),
            // The world stops, or a goroutine is handed over to the machine it is locked to.
            Search::None | Search::Found { .. } if kind == Kind::Transit => Ok(false),
            Search::None if kind == Kind::Rest => Ok(false),
            other => Err(("P4", format!("a processor is given up while the search is {other:?}"))),
        }
    }
}
