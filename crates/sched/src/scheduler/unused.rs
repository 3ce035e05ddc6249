//! Processors that no machine has: idle ones, and those at rest (`rest`).
//!
//! Their lists are guarded by the scheduler's lock; how long these are can be seen without it.

use super::{PROCS_MAX, Scheduler, Synced};
use crate::history::{self, Kind};
use crate::near::{self, Wanted};
use crate::processor::Processor;
use std::sync::atomic::Ordering::Relaxed;

/// The lists.
pub(super) struct Unused {
    /// Idle processors, last in first out.
    idle: [Option<&'static Processor>; PROCS_MAX],
    idle_count: usize,
    /// Processors at rest.
    resting: [Option<&'static Processor>; PROCS_MAX],
    resting_count: usize,
    /// How many are to be at rest.
    resting_wanted: usize,
}

impl Unused {
    pub(super) const fn new() -> Unused {
        Unused {
            idle: [None; PROCS_MAX],
            idle_count: 0,
            resting: [None; PROCS_MAX],
            resting_count: 0,
            resting_wanted: 0,
        }
    }

    fn push_idle(&mut self, p: &'static Processor) {
        self.idle[self.idle_count] = Some(p);
        self.idle_count += 1;
        near::count_idle(p);
        history::processor(Kind::Idle, p);
    }

    fn take_idle(&mut self, wanted: Option<Wanted>) -> Option<&'static Processor> {
        let last = self.idle_count.checked_sub(1)?;
        if let Some(wanted) = wanted {
            self.move_nearest_to_end(wanted);
        }
        self.idle_count = last;
        let p = self.idle[last].take()?;
        near::count_busy(p);
        history::processor(Kind::Transit, p);
        Some(p)
    }

    fn push_resting(&mut self, p: &'static Processor) -> bool {
        if self.resting_count >= self.resting_wanted {
            return false;
        }
        self.resting[self.resting_count] = Some(p);
        self.resting_count += 1;
        history::processor(Kind::Rest, p);
        true
    }

    fn end_rest(&mut self) -> bool {
        let any = self.resting_count > 0;
        for at in 0..std::mem::take(&mut self.resting_count) {
            if let Some(p) = self.resting[at].take() {
                self.push_idle(p);
            }
        }
        self.resting_wanted = 0;
        any
    }

    /// Of those that are equally near, the last one.
    fn move_nearest_to_end(&mut self, wanted: Wanted) {
        let idle = &mut self.idle[..self.idle_count];
        let distance =
            |p: &Option<&'static Processor>| p.map_or(u32::MAX, |p| wanted.distance_to(p));
        let nearest = (0..idle.len()).rev().min_by_key(|at| distance(&idle[*at]));
        if let Some(nearest) = nearest {
            idle[nearest..].rotate_left(1);
        }
    }
}

impl Scheduler {
    /// How many processors are idle; a hint.
    #[inline]
    pub(crate) fn idle_count(&self) -> u32 {
        // ORDERING: Relaxed; callers that must not miss one have a fence of their own.
        self.unused_processors.load(Relaxed) as u32
    }

    /// How many processors no machine has, since they are idle or at rest; a hint.
    #[inline]
    pub(crate) fn unused_count(&self) -> u32 {
        // ORDERING: Relaxed; as above.
        let both = self.unused_processors.load(Relaxed);
        both as u32 + (both >> 32) as u32
    }

    /// Whether no machine has a processor. A hint.
    #[inline]
    pub(crate) fn are_all_unused(&self) -> bool {
        self.unused_count() == self.procs()
    }

    /// How many processors machines have; a hint.
    #[inline]
    pub(crate) fn used_count(&self) -> u32 {
        self.procs().saturating_sub(self.unused_count())
    }

    /// Whether some processor is at rest; a hint.
    pub(crate) fn does_any_rest(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.unused_processors.load(Relaxed) >> 32 > 0
    }

    /// Puts a processor among the idle.
    pub(crate) fn give_idle(&self, p: &'static Processor) {
        let mut synced = self.synced.lock();
        synced.unused.push_idle(p);
        self.publish_unused(&synced);
    }

    /// Puts a processor among those at rest; false if there are as many as there are to be.
    pub(crate) fn give_resting(&self, p: &'static Processor) -> bool {
        let mut synced = self.synced.lock();
        let does_rest = synced.unused.push_resting(p);
        self.publish_unused(&synced);
        does_rest
    }

    /// From now on up to `wanted` processors may be at rest. Those that are, stay.
    pub(crate) fn want_resting(&self, wanted: usize) {
        self.synced.lock().unused.resting_wanted = wanted;
    }

    /// Puts those at rest among the idle; whether there were any.
    pub(crate) fn end_rest(&self) -> bool {
        let mut synced = self.synced.lock();
        let any = synced.unused.end_rest();
        self.publish_unused(&synced);
        any
    }

    /// How many processors are at rest.
    pub(crate) fn resting_count(&self) -> usize {
        self.synced.lock().unused.resting_count
    }

    fn publish_unused(&self, synced: &Synced) {
        let Unused { idle_count, resting_count, .. } = synced.unused;
        // ORDERING: Relaxed; see `idle_count`.
        self.unused_processors.store((resting_count as u64) << 32 | idle_count as u64, Relaxed);
    }

    /// Takes an idle processor, one near the caller if there are several levels.
    pub(crate) fn take_idle(&self) -> Option<&'static Processor> {
        let wanted = near::wanted();
        let mut synced = self.synced.lock();
        self.take_idle_from(&mut synced, wanted)
    }

    /// Takes an idle processor of a node.
    pub(crate) fn take_idle_of(&self, node: u16) -> Option<&'static Processor> {
        let wanted = near::wanted_on(node);
        let mut synced = self.synced.lock();
        if !near::has_idle(node) {
            return None;
        }
        self.take_idle_from(&mut synced, wanted)
    }

    /// As [`take_idle`](Scheduler::take_idle); without one the summoned searcher is called off,
    /// under the same lock (P4 of `Searchers`).
    pub(crate) fn take_idle_or_call_off(&self) -> Option<&'static Processor> {
        let wanted = near::wanted();
        let mut synced = self.synced.lock();
        let p = self.take_idle_from(&mut synced, wanted);
        if p.is_none() {
            self.searchers.call_off();
        }
        p
    }

    fn take_idle_from(
        &self,
        synced: &mut Synced,
        wanted: Option<Wanted>,
    ) -> Option<&'static Processor> {
        let p = synced.unused.take_idle(wanted);
        self.publish_unused(synced);
        p
    }
}
