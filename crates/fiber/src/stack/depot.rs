//! The depot: the pools of all classes, and the work between taking a slot and handing it out.
//!
//! There is one depot in a process; tests make more, to force a guard kind or small arenas.
//!
//! Locks, in order: the sweep lock, one pool's lock, the arena table's lock. No system call but
//! the opening of a chunk and the making of an arena happens under a pool's lock.

use std::ops::Range;
use std::slice::from_ref;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use super::arena;
use super::class::Class;
use super::error::StackError;
use super::guard::{self, GuardKind, MapBudget};
use super::lock::Lock;
use super::pool::{List, Pool, Readiness, Supply};
use super::slot::{Slot, SlotId, Stack};
use super::sys;

/// The depot of the process.
static DEPOT: Depot = Depot::new();

/// Held by `trim` while marks in arenas are set.
static SWEEP: Lock<()> = Lock::new(());

const GUARD_UNDECIDED: u8 = 0;
const GUARD_MARKER: u8 = 1;
const GUARD_PROTECT: u8 = 2;
const GUARD_CANARY: u8 = 3;

/// Pools of idle stacks, one a class.
pub struct Depot {
    pools: [Pool; Class::COUNT],
    /// Written by: `choose_guard`, and the first `alloc`. Read by: `alloc`, for new arenas.
    guard: AtomicU8,
    arena_bytes_max: Option<usize>,
    budget: Option<MapBudget>,
}

/// Figures of a depot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Slots in somebody's hands, caches included.
    pub live: usize,
    /// Idle slots whose pages may be present.
    pub idle_hot: usize,
    /// Idle slots whose pages were given back.
    pub idle_cold: usize,
    /// Address space reserved.
    pub reserved_bytes: usize,
    /// Mappings added by protected guards.
    pub guard_maps: usize,
}

impl Depot {
    /// A depot that uses the best guard the kernel has.
    pub(super) const fn new() -> Self {
        Self {
            pools: [const { Pool::new() }; Class::COUNT],
            guard: AtomicU8::new(GUARD_UNDECIDED),
            arena_bytes_max: None,
            budget: None,
        }
    }

    /// A depot that pretends the kernel allows only so much, so that each fallback can be tested.
    pub const fn restricted(guard: GuardKind, arena_bytes_max: usize, maps_max: usize) -> Self {
        Self {
            pools: [const { Pool::new() }; Class::COUNT],
            guard: AtomicU8::new(guard_code(guard)),
            arena_bytes_max: Some(arena_bytes_max),
            budget: Some(MapBudget::new(maps_max)),
        }
    }

    /// Takes a stack: the most recently freed one, else a cold one, else a fresh one.
    ///
    /// # Errors
    /// See `StackError`; nothing was taken.
    pub fn alloc(&self, class: Class) -> Result<Stack, StackError> {
        let (id, readiness) = self.pool(class).take(self.supply(class))?;
        let slot = arena::resolve(id);
        if readiness != Readiness::Hot {
            self.prepare(slot, readiness)?;
        }
        Ok(Stack::from_slot(slot))
    }

    /// As [`alloc`](Depot::alloc), for a caller who is about to write to the `top_bytes` at its top,
    /// which are less than the stack. Also says whether they are known to be zeroes.
    ///
    /// Missing pages are made present in one call, if they are several: a fault for each costs a
    /// third more (two pages: 4.0 against 3.0 us). For many stacks see [`Ahead`](super::Ahead).
    pub(crate) fn alloc_present(
        &self,
        class: Class,
        top_bytes: usize,
    ) -> Result<(Stack, bool), StackError> {
        let (id, readiness) = self.pool(class).take(self.supply(class))?;
        let slot = arena::resolve(id);
        if readiness != Readiness::Hot {
            self.prepare(slot, readiness)?;
            let pages = top_bytes.next_multiple_of(sys::PAGE);
            if pages > sys::PAGE {
                sys::populate(slot.top - pages..slot.top);
            }
        }
        // Giving the pages of a cold one back may have failed.
        Ok((Stack::from_slot(slot), readiness == Readiness::Bare))
    }

    /// Gives a stack back. Ends the process if its canary was overwritten.
    pub fn free(&self, stack: Stack) {
        let slot = stack.into_slot();
        check_canary(slot);
        let pool = self.pool(slot.class);
        if slot.class.is_pooled() {
            pool.give(slot.id, Readiness::Hot);
        } else {
            let index = slot.id.index();
            drop_slots(arena::arena(slot.id.arena()), from_ref(&(index..index + 1)));
            pool.give(slot.id, Readiness::Cold);
        }
    }

    /// Gives the pages of idle stacks back, except those of the `keep` most recently freed ones.
    /// Returns of how many stacks.
    ///
    /// Neighbours are merged, guards and all, so a million idle stacks cost a few calls. Leaving the
    /// guards out would spare the kernel a walk over their markers, but a call a stack takes twice
    /// as long. While it runs, the stacks in question are in nobody's list and `alloc` makes fresh
    /// ones instead.
    pub fn trim(&self, class: Class, keep: usize) -> usize {
        let pool = self.pool(class);
        let _sweep = SWEEP.lock();
        let mut idle = pool.detach_hot(keep);
        let count = idle.len;
        while let Some(id) = idle.pop() {
            arena::arena(id.arena()).marks().set(id.index());
        }
        for (index, arena) in arena::published() {
            sweep_arena(pool, index, arena);
        }
        count
    }

    /// Figures over all classes.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats { guard_maps: self.budget().used(), ..Stats::default() };
        self.pools.iter().for_each(|pool| sum.add(pool));
        sum
    }

    /// Figures of one class; `guard_maps` is not kept by class and stays 0.
    pub fn stats_of(&self, class: Class) -> Stats {
        let mut one = Stats::default();
        one.add(self.pool(class));
        one
    }

    /// Chooses how overflows are caught in arenas that are made from now on.
    pub fn choose_guard(&self, kind: GuardKind) {
        // ORDERING: relaxed, one independent word.
        self.guard.store(guard_code(kind), Relaxed);
    }

    pub(super) fn pool(&self, class: Class) -> &Pool {
        &self.pools[class.index()]
    }

    pub(super) fn supply(&self, class: Class) -> Supply {
        Supply { class, guard: self.guard_kind(), arena_bytes_max: self.arena_bytes_max }
    }

    fn guard_kind(&self) -> GuardKind {
        // ORDERING: relaxed, one independent word.
        match self.guard.load(Relaxed) {
            GUARD_MARKER => GuardKind::Marker,
            GUARD_PROTECT => GuardKind::Protect,
            GUARD_CANARY => GuardKind::Canary,
            _ => GuardKind::detect(),
        }
    }

    /// Arms the guard of a slot that is not hot. On failure the slot goes back.
    fn prepare(&self, slot: Slot, readiness: Readiness) -> Result<(), StackError> {
        if readiness == Readiness::Cold && slot.guard != GuardKind::Canary {
            return Ok(());
        }
        let range = Stack::from_slot(slot).guard();
        // SAFETY: the slot was taken from its pool just now, so it is ours.
        let armed = unsafe { guard::arm(slot.guard, range, self.budget()) };
        armed.inspect_err(|_| self.pool(slot.class).give(slot.id, readiness))
    }

    fn budget(&self) -> &MapBudget {
        match &self.budget {
            Some(budget) => budget,
            None => MapBudget::of_process(),
        }
    }
}

impl Stats {
    fn add(&mut self, pool: &Pool) {
        let one = pool.stats();
        self.live += one.live;
        self.idle_hot += one.hot;
        self.idle_cold += one.cold;
        self.reserved_bytes += one.reserved_bytes;
    }
}

impl std::fmt::Debug for Depot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stats().fmt(f)
    }
}

const fn guard_code(kind: GuardKind) -> u8 {
    match kind {
        GuardKind::Marker => GUARD_MARKER,
        GuardKind::Protect => GUARD_PROTECT,
        GuardKind::Canary => GUARD_CANARY,
    }
}

/// Drops the pages of the marked slots of one arena and moves them to the cold list in address
/// order. The marks are all of one pool's slots, since the sweep lock is held.
fn sweep_arena(pool: &Pool, index: usize, arena: &arena::Arena) {
    let mut runs = [const { 0..0 }; sys::RANGES_AT_ONCE];
    let mut from = 0;
    loop {
        let mut found = 0;
        while found < runs.len()
            && let Some(run) = arena.marks().take_run(from)
        {
            from = run.end;
            runs[found] = run;
            found += 1;
        }
        if found == 0 {
            return;
        }
        drop_slots(arena, &runs[..found]);
        for run in &runs[..found] {
            let mut chain = List::EMPTY;
            run.clone().rev().for_each(|slot| chain.push(SlotId::new(index, slot)));
            pool.attach_cold(chain, SlotId::new(index, run.end - 1));
        }
    }
}

/// `runs` are at most `RANGES_AT_ONCE`.
fn drop_slots(arena: &arena::Arena, runs: &[Range<u32>]) {
    let mut ranges = [const { 0..0 }; sys::RANGES_AT_ONCE];
    for (range, run) in ranges.iter_mut().zip(runs) {
        *range = arena.range(run.clone());
    }
    // SAFETY: the slots are in nobody's hands but ours. A failure leaves the pages as they are,
    // which costs memory and nothing else.
    unsafe { sys::drop_pages_of(&ranges[..runs.len()]) };
}

/// Ends the process if something wrote below a stack that has only a canary.
pub(super) fn check_canary(slot: Slot) {
    if slot.guard != GuardKind::Canary {
        return;
    }
    let limit = slot.top - slot.class.usable_bytes();
    // SAFETY: `prepare` wrote the canary before the slot was handed out, and the slot is ours.
    if unsafe { guard::canary_intact(limit) } {
        return;
    }
    sys::die(
        b"runtime: goroutine stack overran its limit: the words below it were overwritten\n\
          fatal error: stack overflow\n",
    )
}

/// Gives the pages below the top `keep_top_bytes` of a stack back.
///
/// # Safety
/// * Nobody runs on the stack, and nobody needs what lies further than `keep_top_bytes` below its
///   top; the red zone of 128 bytes below a saved stack pointer counts as needed.
pub unsafe fn release_pages(stack: &Stack, keep_top_bytes: usize) {
    let keep = keep_top_bytes.next_multiple_of(sys::PAGE).min(stack.class().usable_bytes());
    let range = stack.limit()..stack.top() - keep;
    if range.is_empty() {
        return;
    }
    // SAFETY: not needed - the caller's obligation. A failure costs memory and nothing else.
    let _ = unsafe { sys::drop_pages(range) };
}

/// The depot of the process, for what the functions below do not cover.
pub fn depot() -> &'static Depot {
    &DEPOT
}

/// `Depot::alloc` of the process's depot.
///
/// # Errors
/// See `StackError`.
///
/// # Examples
/// ```
/// use gosched_fiber::stack::{self, Class};
///
/// let mut stack = stack::alloc(Class::MIB_1)?;
/// assert_eq!(stack.top() - stack.limit(), 1 << 20);
/// assert_eq!(stack::call_on(&mut stack, || 6 * 7), 42);
/// stack::free(stack);
/// # Ok::<(), stack::StackError>(())
/// ```
pub fn alloc(class: Class) -> Result<Stack, StackError> {
    DEPOT.alloc(class)
}

/// `Depot::alloc_present` of the process's depot.
pub(crate) fn alloc_present(class: Class, top_bytes: usize) -> Result<(Stack, bool), StackError> {
    DEPOT.alloc_present(class, top_bytes)
}

/// `Depot::free` of the process's depot.
pub fn free(stack: Stack) {
    DEPOT.free(stack);
}

/// `Depot::trim` of the process's depot.
pub fn trim(class: Class, keep: usize) -> usize {
    DEPOT.trim(class, keep)
}

/// `Depot::stats` of the process's depot.
pub fn stats() -> Stats {
    DEPOT.stats()
}

/// `Depot::choose_guard` of the process's depot. Call it before the first stack is made.
pub fn choose_guard(kind: GuardKind) {
    DEPOT.choose_guard(kind);
}
