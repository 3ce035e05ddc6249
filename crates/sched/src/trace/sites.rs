//! Stacks of events: what was done, by which function's goroutine, spawned where.
//!
//! Two frames at most: what the goroutine did (`gosched.sleep`), and its root, which is its function at
//! the line that spawned it. Roots are entered in a table of fixed size and numbered; a stack's number
//! is made of its root's and of what was done, so that an event costs no look at the table: what the
//! trace notes of a goroutine has its root (see [`know_root`]). What does not fit has no root.
//!
//! Steps of who enters a root: S1 claim its place, S2 write what it is, S3 READY. Of who looks: L1 the
//! place's state; READY: L2 compare.

use super::words::{self, What};
use crate::goroutine::GRef;
use crate::slab;
use gosched_trace_format::{Frame, Table};
use std::panic::Location;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// So many roots, less one.
const PLACES: usize = 1 << 12;
/// So many places are looked at.
const TRIES: usize = 32;
/// A root's number counts for so many stacks: one for each thing that can be done.
const STACKS: u64 = words::WHATS as u64;

const EMPTY: u32 = 0;
const CLAIMED: u32 = 1;
const READY: u32 = 2;

/// Tells a function's name.
pub(crate) type NameFn = fn() -> &'static str;

struct Place {
    state: AtomicU32,
    root: AtomicU32,
    /// A [`NameFn`], or 0.
    name: AtomicUsize,
    /// A `Location`, or 0.
    site: AtomicUsize,
}

static TABLE: [Place; PLACES] = [const {
    Place {
        state: AtomicU32::new(EMPTY),
        root: AtomicU32::new(0),
        name: AtomicUsize::new(0),
        site: AtomicUsize::new(0),
    }
}; PLACES];

/// How many roots there are, the one without a function included.
static ROOTS: AtomicU32 = AtomicU32::new(1);
/// Which of each root's stacks events have named, a bit each.
static NAMED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

const _: () = assert!(STACKS == u64::BITS as u64);

/// The outermost frame of stacks.
#[derive(Clone, Copy)]
pub(super) struct Root(u32);

impl Root {
    /// That of stacks without a function.
    pub(super) const NONE: Root = Root(0);

    /// The goroutine's function where it was spawned. Only while its task is sure to be there: by
    /// itself, or whoever has it in hand.
    fn of(g: GRef) -> Root {
        find(name(g), g.origin().map_or(0, |(site, _)| (site as *const Location<'_>).addr()))
    }

    /// The goroutine's function at another place, under the same condition.
    pub(super) fn at(g: GRef, site: &'static Location<'static>) -> Root {
        find(name(g), (site as *const Location<'_>).addr())
    }

    /// The number of the stack with `what` at its top. 0, none, for a function that is not known.
    #[inline(always)]
    pub(super) fn stack(self, what: What) -> u64 {
        let (named, bit) = (&NAMED[self.0 as usize % PLACES], 1_u64 << what.number());
        // ORDERING: Relaxed; the collector reads it after the section of the event that names it.
        if named.load(Relaxed) & bit == 0 {
            note(named, bit);
        }
        u64::from(self.0) * STACKS + u64::from(what.number())
    }
}

#[cold]
#[inline(never)]
fn note(named: &AtomicU64, bit: u64) {
    // ORDERING: Relaxed; as above.
    named.fetch_or(bit, Relaxed);
}

/// Notes the root of `g` with it, for as long as the trace knows it. Its task is there.
pub(super) fn know_root(g: GRef) -> Root {
    let root = Root::of(g);
    // ORDERING: Relaxed; handed over with the goroutine.
    slab::name_of(g).root.store(root.0, Relaxed);
    root
}

/// The root of a goroutine that the trace knows.
#[inline(always)]
pub(super) fn root(g: GRef) -> Root {
    // ORDERING: Relaxed; as above.
    Root(slab::name_of(g).root.load(Relaxed))
}

fn name(g: GRef) -> usize {
    g.task.get().map_or(0, |task| {
        // SAFETY: a goroutine that has not ended has its task.
        let name: NameFn = unsafe { task.as_ref() }.function_name();
        name as usize
    })
}

fn find(name: usize, site: usize) -> Root {
    let hash = (name ^ site.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> (usize::BITS - PLACES.ilog2());
    for i in 0..TRIES {
        let place = &TABLE[(hash + i) % PLACES];
        // ORDERING: L1; Acquire pairs with S3.
        let mut state = place.state.load(Acquire);
        if state == EMPTY {
            // ORDERING: S1; Acquire as above.
            match place.state.compare_exchange(EMPTY, CLAIMED, Relaxed, Acquire) {
                Ok(_) => return place.fill(name, site),
                Err(other) => state = other,
            }
        }
        // Of one that is being written nobody knows what it is: an entry more does no harm.
        if state == READY && place.is(name, site) {
            // ORDERING: Relaxed; L2.
            return Root(place.root.load(Relaxed));
        }
    }
    Root::NONE
}

impl Place {
    fn fill(&self, name: usize, site: usize) -> Root {
        // There are as many places as numbers, and one is nobody's: the last place gets none.
        // ORDERING: Relaxed; only uniqueness matters.
        let root = ROOTS.fetch_add(1, Relaxed);
        let root = if (root as usize) < PLACES { root } else { 0 };
        // ORDERING: Relaxed is S2; Release is S3.
        self.root.store(root, Relaxed);
        self.name.store(name, Relaxed);
        self.site.store(site, Relaxed);
        self.state.store(READY, Release);
        Root(root)
    }

    /// L2.
    fn is(&self, name: usize, site: usize) -> bool {
        // ORDERING: Relaxed; after L1.
        self.name.load(Relaxed) == name && self.site.load(Relaxed) == site
    }

    /// The frame at the bottom; none without a place.
    fn frame(&self, root: u32) -> Option<Frame> {
        // ORDERING: Relaxed; after L1.
        let (name, site) = (self.name.load(Relaxed), self.site.load(Relaxed));
        let site = site as *const Location<'static>;
        // SAFETY: null, or a static.
        let site = unsafe { site.as_ref() }?;
        let name = (name != 0).then(|| {
            // SAFETY: only `name` makes such numbers that are not 0, of `NameFn`s.
            let name = unsafe { std::mem::transmute::<usize, NameFn>(name) };
            name()
        });
        Some(Frame {
            pc: 0x1_0000 + 16 * u64::from(root),
            function: name.unwrap_or("goroutine").to_owned(),
            file: site.file().to_owned(),
            line: u64::from(site.line()),
        })
    }
}

/// Enters all that events have named. Allocates.
pub(super) fn enter_all(table: &mut Table) {
    enter(table, Root::NONE, None);
    for place in &TABLE {
        // ORDERING: L1; Acquire pairs with S3. One that is being written is of an event that is being
        // written, in a later generation.
        if place.state.load(Acquire) == READY {
            // ORDERING: Relaxed; L2.
            let root = place.root.load(Relaxed);
            if root != 0 {
                enter(table, Root(root), place.frame(root).as_ref());
            }
        }
    }
}

fn enter(table: &mut Table, root: Root, frame: Option<&Frame>) {
    // ORDERING: Relaxed; written before the sections ended that the collector has waited for.
    let named = NAMED[root.0 as usize].load(Relaxed);
    for what in (0..u64::BITS).filter(|bit| named >> bit & 1 != 0) {
        let number = u64::from(root.0) * STACKS + u64::from(what);
        if number == 0 {
            continue;
        }
        let done = words::frame(what);
        let act = (!done.is_empty()).then(|| Frame {
            pc: 16 + u64::from(what),
            function: done,
            file: String::new(),
            line: 0,
        });
        let frames: Vec<Frame> = act.into_iter().chain(frame.cloned()).collect();
        table.stack(number, &frames);
    }
}
