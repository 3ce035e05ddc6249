//! A small stock of hot stacks that one owner takes from without a lock.
//!
//! The owner is a processor (P): it fills an empty row with half a row from the depot, and spills
//! the older half when a row is full, so that a run of either kind takes the lock once in 16.

use super::arena;
use super::class::{CACHED_MAX, Class};
use super::depot::{self, Depot};
use super::error::StackError;
use super::guard::GuardKind;
use super::slot::{Slot, SlotId, Stack};

const NOTHING: Slot =
    Slot { top: 0, id: SlotId::NONE, class: Class::SMALL, guard: GuardKind::Marker };

/// Slots of one class, the most recently freed one last.
#[derive(Debug)]
struct Row {
    len: usize,
    slots: [Slot; CACHED_MAX],
}

/// A per-owner cache in front of a depot. Dropping it gives its stacks back.
///
/// Go's counterpart is the P's `mcache.stackcache`.
///
/// # Examples
/// ```
/// use gosched_fiber::stack::{Cache, Class};
///
/// let mut cache = Cache::new();
/// let stack = cache.alloc(Class::DEFAULT)?;
/// let top = stack.top();
/// cache.free(stack);
/// assert_eq!(cache.len(Class::DEFAULT), 1);
///
/// let again = cache.alloc(Class::DEFAULT)?;
/// assert_eq!(again.top(), top, "the hottest stack comes first");
/// cache.free(again);
/// # Ok::<(), gosched_fiber::stack::StackError>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    depot: &'static Depot,
    rows: [Row; Class::POOLED],
}

impl Cache {
    /// An empty cache of the process's depot.
    pub fn new() -> Self {
        Self::of(depot::depot())
    }

    /// An empty cache of `depot`.
    pub const fn of(depot: &'static Depot) -> Self {
        let rows = [const { Row { len: 0, slots: [NOTHING; CACHED_MAX] } }; Class::POOLED];
        Self { depot, rows }
    }

    /// Takes the stack freed last, or one from the depot.
    ///
    /// # Errors
    /// See `StackError`; nothing was taken.
    #[inline]
    pub fn alloc(&mut self, class: Class) -> Result<Stack, StackError> {
        match self.rows.get_mut(class.index()).and_then(Row::pop) {
            Some(slot) => Ok(Stack::from_slot(slot)),
            None => self.alloc_refilling(class),
        }
    }

    /// Gives a stack back. Ends the process if its canary was overwritten.
    #[inline]
    pub fn free(&mut self, stack: Stack) {
        let class = stack.class();
        let Some(row) = self.rows.get_mut(class.index()) else {
            return self.depot.free(stack);
        };
        depot::check_canary(stack.slot());
        if row.len == class.cached_max() {
            row.spill(self.depot, class, class.cached_max() / 2);
        }
        row.push(stack.into_slot());
    }

    /// Gives every stack to the depot, so that `trim` can reach it.
    pub fn flush(&mut self) {
        for (class, row) in Class::all().zip(&mut self.rows) {
            row.spill(self.depot, class, row.len);
        }
    }

    /// How many stacks of `class` the cache holds.
    pub fn len(&self, class: Class) -> usize {
        self.rows.get(class.index()).map_or(0, |row| row.len)
    }

    #[cold]
    fn alloc_refilling(&mut self, class: Class) -> Result<Stack, StackError> {
        if let Some(row) = self.rows.get_mut(class.index()) {
            row.refill(self.depot, class);
            if let Some(slot) = row.pop() {
                return Ok(Stack::from_slot(slot));
            }
        }
        self.depot.alloc(class)
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Row {
    fn push(&mut self, slot: Slot) {
        self.slots[self.len] = slot;
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Slot> {
        self.len = self.len.checked_sub(1)?;
        Some(self.slots[self.len])
    }

    /// Moves hot slots here, the hottest last.
    fn refill(&mut self, depot: &Depot, class: Class) {
        depot.pool(class).take_hot(class.cached_max() / 2, |id| self.push(arena::resolve(id)));
        self.slots[..self.len].reverse();
    }

    /// Moves the `count` oldest slots to the depot.
    fn spill(&mut self, depot: &Depot, class: Class, count: usize) {
        depot.pool(class).give_hot(self.slots[..count].iter().map(|slot| slot.id));
        self.slots.copy_within(count..self.len, 0);
        self.len -= count;
    }
}
