//! Arenas: one reservation of address space each, and the table that finds a slot by address.
//!
//! An arena starts out inaccessible and is opened from its low end, chunk by chunk, so that it is
//! two mappings however many slots are in use, that `vm.overcommit_memory=2` charges only what is
//! open, and that a core dump walks only that part.
//!
//! Invariants
//! * I1. Descriptors are written once, under the table's lock, before any slot of the arena is
//!   handed out, and never change (I2 of `stack`).
//! * I2. `links[i]` belongs to whoever owns slot `i`: the pool's lock while the slot is in a list.

use std::ops::Range;
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::bitmap::Bitmap;
use super::class::Class;
use super::error::StackError;
use super::guard::{GuardKind, refused};
use super::lock::Lock;
use super::slot::{Slot, SlotId};
use super::sys::{self, Access};

/// What an arena reserves if the system allows it.
const ARENA_BYTES: usize = 64 << 30;
/// Opened at a time at least, or one slot where slots are larger.
const CHUNK_BYTES: usize = 16 << 20;
/// As much as this part of what is open already is opened at a time, but no more than
/// [`CHUNK_BYTES_MAX`]: each time all others are kept from the process's mappings.
const CHUNK_SHARE: u32 = 4;
const CHUNK_BYTES_MAX: usize = 1 << 30;
/// An arena takes at most this part of a limited address space.
const LIMITED_SHARE: usize = 16;

/// One reservation, cut into equal slots.
pub(super) struct Arena {
    base: usize,
    slots: u32,
    class: Class,
    guard: GuardKind,
    /// One list link a slot. Guarded by: see I2.
    links: &'static [AtomicU32],
    /// One bit a slot. Written and read by: `Depot::trim`, under the sweep lock.
    marks: Bitmap,
}

impl Arena {
    /// Reserves at most `bytes_max`, halving while the system refuses.
    fn reserve(class: Class, guard: GuardKind, bytes_max: usize) -> Result<Self, StackError> {
        let mut slots = slots_wanted(class, bytes_max);
        let base = loop {
            match sys::map(slots * class.stride(), Access::None) {
                Ok(base) => break base,
                Err(error) if slots == 1 => return Err(refused(error)),
                Err(_) => slots = slots.div_ceil(2),
            }
        };
        let range = base..base + slots * class.stride();
        sys::forbid_huge_pages(range.clone());
        Self::with_table(base, slots as u32, class, guard).inspect_err(|_| {
            // SAFETY: mapped above, known to nobody else.
            unsafe { sys::unmap(range) };
        })
    }

    fn with_table(
        base: usize,
        slots: u32,
        class: Class,
        guard: GuardKind,
    ) -> Result<Self, StackError> {
        let words = Bitmap::words_for(slots);
        let links_at = words * size_of::<AtomicU64>();
        let bytes = links_at + slots as usize * size_of::<AtomicU32>();
        let table = sys::map(bytes, Access::ReadWrite).map_err(refused)?;
        let marks = ptr::with_exposed_provenance::<AtomicU64>(table);
        let links = ptr::with_exposed_provenance::<AtomicU32>(table + links_at);
        // SAFETY: fresh zeroed memory of that many words, aligned, never unmapped once published.
        let marks = unsafe { slice::from_raw_parts(marks, words) };
        // SAFETY: fresh zeroed memory of that many links, aligned, never unmapped once published.
        let links = unsafe { slice::from_raw_parts(links, slots as usize) };
        Ok(Self { base, slots, class, guard, links, marks: Bitmap::new(marks) })
    }

    /// Makes the chunk that holds slot `index` accessible; returns the first slot not yet open.
    ///
    /// The caller holds the pool's lock, and no slot from `index` on is open.
    pub(super) fn open_chunk(&self, index: u32) -> Result<u32, StackError> {
        // The kernel fills locked memory with pages as soon as it becomes accessible, and memory
        // may get locked (`mlockall`) when it is mapped or at any later time. What is not open yet
        // is unlocked as a whole, so that it stays one mapping.
        sys::unlock_pages(self.range(index..self.slots));
        let mut count = chunk_slots(self.class, index);
        loop {
            let end = index.saturating_add(count).min(self.slots);
            // SAFETY: slots above the frontier are in use by nobody.
            match unsafe { sys::protect(self.range(index..end), Access::ReadWrite) } {
                Ok(()) => return Ok(end),
                // Where memory is charged in advance there may be enough for fewer.
                Err(_) if count > chunk_slots(self.class, 0) => count /= 2,
                Err(error) => return Err(refused(error)),
            }
        }
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    pub(super) fn marks(&self) -> Bitmap {
        self.marks
    }

    /// The addresses of neighbouring slots, guards included.
    pub(super) fn range(&self, slots: Range<u32>) -> Range<usize> {
        let stride = self.class.stride();
        self.base + slots.start as usize * stride..self.base + slots.end as usize * stride
    }

    /// Bytes of address space.
    pub(super) fn bytes(&self) -> usize {
        self.slots as usize * self.class.stride()
    }

    fn info(&self, address: usize) -> Option<SlotInfo> {
        let offset = address.wrapping_sub(self.base);
        if offset >= self.bytes() {
            return None;
        }
        let index = (offset / self.class.stride()) as u32;
        let slot = self.range(index..index + 1);
        Some(SlotInfo {
            guard: slot.start..slot.start + self.class.guard_bytes(),
            top: slot.end,
            class: self.class,
            address,
        })
    }
}

fn slots_wanted(class: Class, bytes_max: usize) -> usize {
    if !class.is_pooled() {
        return 1;
    }
    let limited = sys::address_space_limit().map_or(bytes_max, |limit| limit / LIMITED_SHARE);
    (bytes_max.min(limited) / class.stride()).clamp(1, SlotId::PER_ARENA_MAX)
}

/// Slots of the next chunk of an arena in which so many are `open`.
pub(super) fn chunk_slots(class: Class, open: u32) -> u32 {
    let [least, most] = [CHUNK_BYTES, CHUNK_BYTES_MAX].map(|bytes| (bytes / class.stride()) as u32);
    (open / CHUNK_SHARE).clamp(least, most).max(1)
}

/// Where an address lies among the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    guard: Range<usize>,
    top: usize,
    class: Class,
    address: usize,
}

impl SlotInfo {
    /// Whether the address lies in the slot's guard.
    pub fn in_guard(&self) -> bool {
        self.guard.contains(&self.address)
    }

    /// The slot's guard.
    pub fn guard(&self) -> Range<usize> {
        self.guard.clone()
    }

    /// The lowest usable address.
    pub fn limit(&self) -> usize {
        self.guard.end
    }

    /// The address just above the stack.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The slot's class.
    pub fn class(&self) -> Class {
        self.class
    }
}

/// Every arena there is. Filled from the front, never emptied.
static ARENAS: [OnceLock<Arena>; SlotId::ARENAS_MAX] =
    [const { OnceLock::new() }; SlotId::ARENAS_MAX];

/// Where the next arena goes. Held while one is made, so that none is made in vain.
static NEXT: Lock<usize> = Lock::new(0);

/// The slot that `address` lies in, if it lies in one.
///
/// Takes no lock and may be called from a signal handler. It says nothing of whether the slot is in
/// use.
///
/// # Examples
/// ```
/// use gosched_fiber::stack::{self, Class, slot_of};
///
/// let stack = stack::alloc(Class::SMALL)?;
/// let slot = slot_of(stack.limit() - 1).expect("an address of the slot");
/// assert!(slot.in_guard());
/// assert_eq!(slot.top(), stack.top());
/// stack::free(stack);
///
/// let local = 0;
/// assert_eq!(slot_of((&raw const local).addr()), None);
/// # Ok::<(), stack::StackError>(())
/// ```
pub fn slot_of(address: usize) -> Option<SlotInfo> {
    published().find_map(|(_, arena)| arena.info(address))
}

/// Whether `address` lies in a slot: cheaper than [`slot_of`] and as safe in a signal handler.
#[inline]
pub fn is_in_slot(address: usize) -> bool {
    published().any(|(_, arena)| address.wrapping_sub(arena.base) < arena.bytes())
}

/// All arenas with their numbers.
pub(super) fn published() -> impl Iterator<Item = (usize, &'static Arena)> {
    ARENAS.iter().map_while(OnceLock::get).enumerate()
}

/// Makes and publishes an arena.
pub(super) fn create(
    class: Class,
    guard: GuardKind,
    bytes_max: Option<usize>,
) -> Result<usize, StackError> {
    let mut next = NEXT.lock();
    let place = ARENAS.get(*next).ok_or(StackError::ArenasExhausted)?;
    let arena = Arena::reserve(class, guard, bytes_max.unwrap_or(ARENA_BYTES))?;
    // The place is empty: `next` moves past each place that was filled, under its lock.
    let _ = place.set(arena);
    *next += 1;
    Ok(*next - 1)
}

/// The arena of number `index`, which `create` returned.
pub(super) fn arena(index: usize) -> &'static Arena {
    match ARENAS[index].get() {
        Some(arena) => arena,
        None => sys::die(b"fatal error: gosched: a stack names an arena that does not exist\n"),
    }
}

/// The slot with all that its id implies.
pub(super) fn resolve(id: SlotId) -> Slot {
    let arena = arena(id.arena());
    let top = arena.range(id.index()..id.index() + 1).end;
    Slot { top, id, class: arena.class, guard: arena.guard }
}

/// What follows `id` in the list that it is in.
pub(super) fn next_of(id: SlotId) -> SlotId {
    // ORDERING: relaxed, the slot's owner guards its link (I2).
    SlotId::from_bits(arena(id.arena()).links[id.index() as usize].load(Relaxed))
}

/// Sets what follows `id` in the list that it is in.
pub(super) fn set_next(id: SlotId, next: SlotId) {
    // ORDERING: relaxed, the slot's owner guards its link (I2).
    arena(id.arena()).links[id.index() as usize].store(next.bits(), Relaxed);
}
