//! Size classes: what a request for stack bytes is rounded up to.
//!
//! Five pooled classes are cut from shared arenas. Larger requests get a mapping of their own,
//! sized by powers of two, which is kept for reuse as well. The table is the only place that
//! knows the sizes; everything else computes with `usable_bytes`, `guard_bytes` and `stride`.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Frames of a debug build are about three times as large. It pays with half a KiB of page table
/// more for a stack.
const DEFAULT_USABLE: usize = if cfg!(debug_assertions) { 448 * KIB } else { 192 * KIB };

/// How a pooled class is cut.
struct Shape {
    usable: usize,
    guard: usize,
    /// Slots of this class that one `Cache` may hold.
    cached: usize,
}

/// Guards of 64 KiB stop C frames of up to that size that do not probe; a guard of one page was
/// seen to be jumped. Deep stacks are for deep C code, so they get 1 MiB. The default class
/// takes its guard out of its 256 KiB (see the module page of `stack` for why).
///
/// The default's size is measured (the workspace `ecosystem` prints it). The deepest common work,
/// serde_json at its limit of 128 levels, takes 78 KiB optimised and 245 KiB in a debug build; a
/// regex with Unicode classes 26 and 123, a panic with a full backtrace 25 and 17.
const SHAPES: [Shape; Class::POOLED] = [
    Shape { usable: 64 * KIB, guard: 64 * KIB, cached: 32 },
    Shape { usable: DEFAULT_USABLE, guard: 64 * KIB, cached: 32 },
    Shape { usable: MIB, guard: MIB, cached: 8 },
    Shape { usable: 8 * MIB, guard: MIB, cached: 4 },
    Shape { usable: 64 * MIB, guard: MIB, cached: 2 },
];

/// The smallest class with a mapping of its own; each further one doubles.
const DEDICATED_BYTES_MIN: usize = 128 * MIB;
const DEDICATED_GUARD: usize = MIB;

/// A stack size that the allocator serves.
///
/// Go has one kind of stack, which is copied when it outgrows its memory. A Rust stack cannot
/// move, so its size is chosen when it is made; only touched pages cost memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// 64 KiB usable.
    pub const SMALL: Self = Self(0);
    /// 192 KiB usable, 256 KiB of address space; 448 of 512 KiB in a debug build.
    pub const DEFAULT: Self = Self(1);
    /// 1 MiB usable.
    pub const MIB_1: Self = Self(2);
    /// 8 MiB usable, as the main thread of most processes has.
    pub const MIB_8: Self = Self(3);
    /// 64 MiB usable.
    pub const MIB_64: Self = Self(4);

    /// How many classes share arenas; the others have a mapping a stack.
    pub const POOLED: usize = 5;
    /// How many classes there are. The largest has 64 GiB.
    pub const COUNT: usize = Self::POOLED + 10;

    /// Every class, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// The smallest class with at least `bytes` usable bytes, or `None` above 64 GiB.
    pub fn for_bytes(bytes: usize) -> Option<Self> {
        Self::all().find(|class| class.usable_bytes() >= bytes)
    }

    /// Bytes from the lowest usable address to the top.
    pub fn usable_bytes(self) -> usize {
        match SHAPES.get(self.index()) {
            Some(shape) => shape.usable,
            None => DEDICATED_BYTES_MIN << (self.index() - Self::POOLED),
        }
    }

    /// Bytes of the guard below the usable part.
    pub fn guard_bytes(self) -> usize {
        SHAPES.get(self.index()).map_or(DEDICATED_GUARD, |shape| shape.guard)
    }

    /// Distance between two slots.
    pub fn stride(self) -> usize {
        self.usable_bytes() + self.guard_bytes()
    }

    /// Whether slots of this class share an arena.
    pub fn is_pooled(self) -> bool {
        self.index() < Self::POOLED
    }

    /// Bound of a cache row; 0 for classes that are never cached.
    pub(super) fn cached_max(self) -> usize {
        SHAPES.get(self.index()).map_or(0, |shape| shape.cached)
    }

    /// The class as an index below [`COUNT`](Class::COUNT).
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The largest `cached` of the table: how long a cache row is.
pub(super) const CACHED_MAX: usize = 32;

const _: () = {
    let mut i = 0;
    while i < SHAPES.len() {
        assert!(SHAPES[i].cached <= CACHED_MAX && SHAPES[i].cached >= 2);
        assert!(SHAPES[i].usable.is_multiple_of(64 * KIB));
        assert!(SHAPES[i].guard.is_multiple_of(64 * KIB));
        i += 1;
    }
};
