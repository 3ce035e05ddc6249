//! Names of slots: the copyable id used inside, and the owning handle given out.

use std::ops::Range;

use super::class::Class;
use super::guard::GuardKind;

const INDEX_BITS: u32 = 20;

/// Which slot of which arena, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u32);

impl SlotId {
    /// No slot: ends a list.
    pub(super) const NONE: Self = Self(u32::MAX);
    /// Slots one arena may have.
    pub(super) const PER_ARENA_MAX: usize = 1 << INDEX_BITS;
    /// Arenas there may be. One less than fits, so that no id equals `NONE`.
    pub(super) const ARENAS_MAX: usize = (1 << (u32::BITS - INDEX_BITS)) - 1;

    pub(super) fn new(arena: usize, index: u32) -> Self {
        debug_assert!(arena < Self::ARENAS_MAX && (index as usize) < Self::PER_ARENA_MAX);
        Self((arena as u32) << INDEX_BITS | index)
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn arena(self) -> usize {
        (self.0 >> INDEX_BITS) as usize
    }

    pub(super) fn index(self) -> u32 {
        self.0 & ((1 << INDEX_BITS) - 1)
    }
}

/// A slot as it lies in caches: all that taking and giving back need, so that neither reads a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) top: usize,
    pub(super) id: SlotId,
    pub(super) class: Class,
    pub(super) guard: GuardKind,
}

const _: () = assert!(size_of::<Slot>() == 16);

/// A stack. Owns its slot; give it back with `free` or `Cache::free`, dropping it leaks it.
///
/// Go's counterpart is the pair of bounds `g.stack`. Here the bounds never change: the stack grows
/// by touching pages, and a goroutine that needs more runs on a further stack (`grow`).
#[derive(Debug)]
#[must_use = "a stack that is dropped is lost for ever; give it back with `free`"]
pub struct Stack {
    slot: Slot,
}

impl Stack {
    pub(super) fn from_slot(slot: Slot) -> Self {
        Self { slot }
    }

    pub(super) fn into_slot(self) -> Slot {
        self.slot
    }

    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    /// The address just above the stack; a multiple of 4096.
    pub fn top(&self) -> usize {
        self.slot.top
    }

    /// The lowest usable address.
    pub fn limit(&self) -> usize {
        self.slot.top - self.slot.class.usable_bytes()
    }

    /// The addresses below the limit that are guarded.
    pub fn guard(&self) -> Range<usize> {
        self.limit() - self.slot.class.guard_bytes()..self.limit()
    }

    /// The size class.
    pub fn class(&self) -> Class {
        self.slot.class
    }
}
