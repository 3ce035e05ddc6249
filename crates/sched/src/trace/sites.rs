//! Stacks of events: what was done, by which function's goroutine, spawned where.
//!
//! Two frames at most: what the goroutine did (`gosched.sleep`), and its function at the line that
//! spawned it. They are numbered by their place in a table of fixed size, so that an event costs a look
//! and no memory; what does not fit has no stack.
//!
//! Steps of who enters a place: S1 claim it, S2 write what it is, S3 READY. Of who looks: L1 its state;
//! READY: L2 compare.

use super::words::{self, What};
use crate::goroutine::GRef;
use gosched_trace_format::{Frame, Table};
use std::panic::Location;
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

const PLACES: usize = 1 << 13;
/// So many places are looked at.
const TRIES: usize = 32;

const EMPTY: u32 = 0;
const CLAIMED: u32 = 1;
const READY: u32 = 2;

/// Tells a function's name.
pub(crate) type NameFn = fn() -> &'static str;

struct Place {
    state: AtomicU32,
    what: AtomicU32,
    /// A [`NameFn`], or 0.
    name: AtomicUsize,
    /// A `Location`, or 0.
    site: AtomicUsize,
}

static TABLE: [Place; PLACES] = [const {
    Place {
        state: AtomicU32::new(EMPTY),
        what: AtomicU32::new(0),
        name: AtomicUsize::new(0),
        site: AtomicUsize::new(0),
    }
}; PLACES];

/// Whose code it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Who {
    name: usize,
    site: usize,
}

impl Who {
    /// The goroutine's function. Only while its task is sure to be there: by itself, or whoever has it
    /// in hand.
    pub(super) fn of(g: GRef) -> Who {
        let name = g.task.get().map_or(0, |task| {
            // SAFETY: a goroutine that has not ended has its task.
            let name: NameFn = unsafe { task.as_ref() }.function_name();
            name as usize
        });
        let site = g.origin().map_or(0, |(site, _)| (site as *const Location<'_>).addr());
        Who { name, site }
    }

    /// As this one, at another place.
    pub(super) fn at(self, site: &'static Location<'static>) -> Who {
        Who { site: (site as *const Location<'_>).addr(), ..self }
    }
}

/// The number of the stack; 0 if there is no room.
pub(super) fn stack(what: What, who: Who) -> u64 {
    let hash = (who.name ^ who.site.rotate_left(17) ^ (what.number() as usize) << 3)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> (usize::BITS - PLACES.ilog2());
    for i in 0..TRIES {
        let at = (hash + i) % PLACES;
        let place = &TABLE[at];
        // ORDERING: L1; Acquire pairs with S3.
        let mut state = place.state.load(Acquire);
        if state == EMPTY {
            // ORDERING: S1; Acquire as above.
            match place.state.compare_exchange(EMPTY, CLAIMED, Relaxed, Acquire) {
                Ok(_) => {
                    place.fill(what, who);
                    return at as u64 + 1;
                }
                Err(other) => state = other,
            }
        }
        // Of one that is being written nobody knows what it is: an entry more does no harm.
        if state == READY && place.is(what, who) {
            return at as u64 + 1;
        }
    }
    0
}

impl Place {
    fn fill(&self, what: What, who: Who) {
        // ORDERING: Relaxed is S2; Release is S3.
        self.what.store(what.number(), Relaxed);
        self.name.store(who.name, Relaxed);
        self.site.store(who.site, Relaxed);
        self.state.store(READY, Release);
    }

    /// L2.
    fn is(&self, what: What, who: Who) -> bool {
        // ORDERING: Relaxed; after L1.
        self.what.load(Relaxed) == what.number()
            && self.name.load(Relaxed) == who.name
            && self.site.load(Relaxed) == who.site
    }

    fn frames(&self, at: usize) -> Vec<Frame> {
        // ORDERING: Relaxed; after L1.
        let (name, site) = (self.name.load(Relaxed), self.site.load(Relaxed));
        let what = self.what.load(Relaxed);
        let site = site as *const Location<'static>;
        // SAFETY: null, or a static.
        let site = unsafe { site.as_ref() };
        let name = (name != 0).then(|| {
            // SAFETY: only `Who::of` makes such numbers that are not 0, of `NameFn`s.
            let name = unsafe { std::mem::transmute::<usize, NameFn>(name) };
            name()
        });
        let own = 0x1_0000 + 16 * at as u64;
        let frame = |pc, function: &str, file: &str, line| Frame {
            pc,
            function: function.to_owned(),
            file: file.to_owned(),
            line,
        };
        let done = words::frame(what);
        let act = (!done.is_empty()).then(|| frame(16 + u64::from(what), &done, "", 0));
        let root = site.map(|site| {
            frame(own, name.unwrap_or("goroutine"), site.file(), u64::from(site.line()))
        });
        act.into_iter().chain(root).collect()
    }
}

/// Enters all there are. Allocates.
pub(super) fn enter_all(table: &mut Table) {
    for (at, place) in TABLE.iter().enumerate() {
        // ORDERING: L1; Acquire pairs with S3. One that is being written is of an event that is being
        // written, in a later generation.
        if place.state.load(Acquire) == READY {
            table.stack(at as u64 + 1, &place.frames(at));
        }
    }
}
