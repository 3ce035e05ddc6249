//! The idle slots of one class, as lists under one lock.
//!
//! What an idle slot needs before it can be used again is said by the list it is in. `hot` comes
//! first, most recently freed slot first, since its pages are there and likely in a cache.

use super::arena;
use super::class::Class;
use super::error::StackError;
use super::guard::GuardKind;
use super::lock::Lock;
use super::slot::SlotId;

/// What has to be done before a slot can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Guard and pages are there.
    Hot,
    /// The guard is there; the pages were given back, and with them a canary.
    Cold,
    /// No guard yet.
    Bare,
}

/// A chain of slots, linked beside the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: SlotId,
    pub(super) len: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: SlotId::NONE, len: 0 };

    pub(super) fn push(&mut self, id: SlotId) {
        arena::set_next(id, self.head);
        self.head = id;
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<SlotId> {
        if self.head == SlotId::NONE {
            return None;
        }
        let id = self.head;
        self.head = arena::next_of(id);
        self.len -= 1;
        Some(id)
    }

    /// Cuts the list after `keep` slots and returns the rest.
    pub(super) fn split_off(&mut self, keep: usize) -> Self {
        if keep == 0 {
            return std::mem::replace(self, Self::EMPTY);
        }
        if keep >= self.len {
            return Self::EMPTY;
        }
        let mut last = self.head;
        for _ in 1..keep {
            last = arena::next_of(last);
        }
        let rest = Self { head: arena::next_of(last), len: self.len - keep };
        arena::set_next(last, SlotId::NONE);
        self.len = keep;
        rest
    }
}

/// Never used slots: from `next` on in the arena, of which those below `open` are accessible.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    arena: usize,
    next: u32,
    open: u32,
    slots: u32,
}

/// What the pool's lock guards.
#[derive(Debug)]
struct Synced {
    hot: List,
    cold: List,
    bare: List,
    frontier: Frontier,
    /// Slots ever taken from a frontier.
    carved: usize,
    reserved_bytes: usize,
}

/// Figures of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PoolStats {
    pub(super) live: usize,
    pub(super) hot: usize,
    pub(super) cold: usize,
    pub(super) reserved_bytes: usize,
}

/// All slots of one class that nobody holds.
pub(super) struct Pool {
    synced: Lock<Synced>,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            synced: Lock::new(Synced {
                hot: List::EMPTY,
                cold: List::EMPTY,
                bare: List::EMPTY,
                frontier: Frontier { arena: 0, next: 0, open: 0, slots: 0 },
                carved: 0,
                reserved_bytes: 0,
            }),
        }
    }

    /// Takes the slot that is cheapest to make usable.
    pub(super) fn take(&self, supply: Supply) -> Result<(SlotId, Readiness), StackError> {
        self.synced.lock().take_locked(supply)
    }

    /// As [`take`](Pool::take) `count` times, or until there are no more, under one lock.
    pub(super) fn take_many(
        &self,
        supply: Supply,
        count: usize,
        mut each: impl FnMut(SlotId, Readiness),
    ) {
        let mut synced = self.synced.lock();
        for _ in 0..count {
            let Ok((id, readiness)) = synced.take_locked(supply) else { return };
            each(id, readiness);
        }
    }

    /// Takes up to `max` hot slots under one lock.
    pub(super) fn take_hot(&self, max: usize, mut each: impl FnMut(SlotId)) {
        let mut synced = self.synced.lock();
        for _ in 0..max {
            let Some(id) = synced.hot.pop() else { return };
            each(id);
        }
    }

    pub(super) fn give(&self, id: SlotId, readiness: Readiness) {
        let mut synced = self.synced.lock();
        match readiness {
            Readiness::Hot => synced.hot.push(id),
            Readiness::Cold => synced.cold.push(id),
            Readiness::Bare => synced.bare.push(id),
        }
    }

    /// Gives many hot slots back under one lock; the last becomes the next to be taken.
    pub(super) fn give_hot(&self, ids: impl Iterator<Item = SlotId>) {
        let mut synced = self.synced.lock();
        ids.for_each(|id| synced.hot.push(id));
    }

    /// Takes all hot slots but the `keep` most recently freed ones.
    pub(super) fn detach_hot(&self, keep: usize) -> List {
        self.synced.lock().hot.split_off(keep)
    }

    /// Puts a chain whose last slot is `last` in front of the cold slots.
    pub(super) fn attach_cold(&self, chain: List, last: SlotId) {
        let mut synced = self.synced.lock();
        arena::set_next(last, synced.cold.head);
        synced.cold = List { head: chain.head, len: synced.cold.len + chain.len };
    }

    pub(super) fn stats(&self) -> PoolStats {
        let synced = self.synced.lock();
        let idle = synced.hot.len + synced.cold.len + synced.bare.len;
        PoolStats {
            live: synced.carved - idle,
            hot: synced.hot.len,
            cold: synced.cold.len,
            reserved_bytes: synced.reserved_bytes,
        }
    }
}

/// What a pool makes new arenas of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    pub(super) class: Class,
    pub(super) guard: GuardKind,
    pub(super) arena_bytes_max: Option<usize>,
}

impl Synced {
    fn take_locked(&mut self, supply: Supply) -> Result<(SlotId, Readiness), StackError> {
        if let Some(id) = self.hot.pop() {
            return Ok((id, Readiness::Hot));
        }
        if let Some(id) = self.cold.pop() {
            return Ok((id, Readiness::Cold));
        }
        if let Some(id) = self.bare.pop() {
            return Ok((id, Readiness::Bare));
        }
        Ok((self.carve_locked(supply)?, Readiness::Bare))
    }

    /// Takes a slot that was never used.
    fn carve_locked(&mut self, supply: Supply) -> Result<SlotId, StackError> {
        if self.frontier.next == self.frontier.slots {
            self.add_arena_locked(supply)?;
        }
        let frontier = &mut self.frontier;
        if frontier.next == frontier.open {
            frontier.open = arena::arena(frontier.arena).open_chunk(frontier.next)?;
        }
        let id = SlotId::new(frontier.arena, frontier.next);
        frontier.next += 1;
        self.carved += 1;
        Ok(id)
    }

    #[cold]
    fn add_arena_locked(&mut self, supply: Supply) -> Result<(), StackError> {
        let index = arena::create(supply.class, supply.guard, supply.arena_bytes_max)?;
        let arena = arena::arena(index);
        self.frontier = Frontier { arena: index, next: 0, open: 0, slots: arena.slots() };
        self.reserved_bytes += arena.bytes();
        Ok(())
    }
}
