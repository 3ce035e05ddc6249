//! GOMAXPROCS: how many processors there are to be, and who says so.
//!
//! The default follows from the affinity mask and the quotas of cgroups, see `gosched_topology`. As
//! long as nobody else has said a number it is *followed*: once a second at most the monitor looks
//! whether the default has changed, in files that are open, and the starter, which may allocate,
//! stops the world and changes the number. A process whose processors are all idle looks at nothing.
//!
//! Invariants
//! * I1. `FOLLOWS` changes only in the turn of whoever may stop the world, so a number that somebody
//!   has asked for is not changed by an update that began before.
//!
//! Go's `updateMaxProcsGoroutine` is a goroutine that the monitor wakes; here it is a thread that
//! is there anyway, and no goroutine that counts and dumps would have to leave out.

use crate::config::Settled;
use crate::fleet;
use crate::monitor::Noted;
use crate::scheduler::{PROCS_MAX, SCHEDULER};
use crate::start::ensure_started;
use crate::{forked, near, world};
use gosched_base::{Lock, os};
use gosched_topology::{Containers, Root, Seen, Watch, default_procs as default_of, look_once};
use std::fmt::{self, Write};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed},
};

/// Go's number.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// Whether the number of processors is the default, and stays it.
static FOLLOWS: AtomicBool = AtomicBool::new(false);
/// The open files. Taken by: the monitor to look, the starter to replace them; never by threads that
/// can be stopped.
static WATCH: Lock<Option<Watch>> = Lock::new(None);
/// When the monitor looked last. Monitor only.
static LOOKED: Noted = Noted::new();
/// The monitor has seen a change that the starter is to see to.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the number of processors is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is the default.
    Default,
    /// Somebody has said it.
    Asked,
}

impl Source {
    fn current() -> Source {
        // ORDERING: Relaxed; a plain number, see I1 for who relies on it.
        if FOLLOWS.load(Relaxed) { Source::Default } else { Source::Asked }
    }

    /// In the turn of whoever may stop the world, or before there is one.
    pub(crate) fn set(self) {
        // ORDERING: Relaxed; as above.
        FOLLOWS.store(self == Source::Default, Relaxed);
    }
}

/// Where the numbers come from, and whether quotas count.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) root: Root,
    pub(crate) containers: Containers,
}

impl Sight {
    /// What holds now.
    pub(crate) fn look(&self) -> Seen {
        let mut seen = look_once(&self.root, self.containers);
        if near::pins() {
            // The caller's mask may be that of a node.
            seen.cpus = crate::num_cpu();
            seen.procs = default_of(seen.cpus, seen.quota);
        }
        seen
    }
}

/// Opens the files if the number is to be followed. Before the monitor may look.
pub(crate) fn start(settled: &Settled) {
    settled.procs_source.set();
    if settled.procs_source == Source::Default {
        open_watch(settled);
    }
}

fn open_watch(settled: &Settled) {
    if settled.updates_procs {
        let new = Watch::open(&settled.sight.root, settled.sight.containers);
        let old = WATCH.lock().replace(new);
        // Closed without the lock.
        drop(old);
    }
}

fn ask_starter() {
    // ORDERING: AcqRel pairs with `update_if_asked`.
    IS_ASKED.swap(true, AcqRel);
    fleet::call_starter();
}

/// For the monitor: has the default changed?
pub(crate) fn look(now: u64) {
    if !is_default() || now.saturating_sub(LOOKED.get()) < LOOK_EVERY_NS {
        return;
    }
    LOOKED.set(now);
    // Not while the runtime starts.
    if SCHEDULER.settled.get().is_none_or(|settled| !settled.updates_procs) {
        return;
    }
    let has_changed = match &*WATCH.lock() {
        None => true,
        Some(watch) => {
            let other = |seen: Seen| clipped(seen.procs) != SCHEDULER.procs() as usize;
            watch.is_stale() || watch.look().is_some_and(other)
        }
    };
    if has_changed {
        ask_starter();
    }
}

/// For the starter: follows a change that the monitor has seen.
pub(crate) fn update_if_asked() {
    // ORDERING: AcqRel pairs with `look`; what was seen is looked at again.
    if !IS_ASKED.swap(false, AcqRel) {
        return;
    }
    let Some(settled) = SCHEDULER.settled.get() else { return };
    if WATCH.lock().as_ref().is_none_or(Watch::is_stale) {
        open_watch(settled);
    }
    let Some(seen) = WATCH.lock().as_ref().and_then(Watch::look) else { return };
    let now = clipped(seen.procs);
    if let Some(before) = world::set_procs_if(now, Source::Default, is_default)
        && before != now
    {
        SCHEDULER.counts.procs_updates.add_shared();
        say_so(before, now, seen);
    }
}

fn clipped(procs: usize) -> usize {
    procs.clamp(1, PROCS_MAX)
}

/// One line, in one piece. The starter must not wait for a lock of the program's.
fn say_so(before: usize, now: usize, seen: Seen) {
    let mut line = Line { bytes: [0; 160], length: 0 };
    let cpus = seen.cpus;
    let _ = write!(line, "gosched: GOMAXPROCS is {now} now, was {before} (CPUs: {cpus}, ");
    let _ = match seen.quota {
        Some(quota) => writeln!(line, "quota: {quota})"),
        None => writeln!(line, "no quota)"),
    };
    os::write_all(2, &line.bytes[..line.length]);
}

/// Text without an allocation; what does not fit is left out.
struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

/// Sets GOMAXPROCS and returns its former value. The world is stopped for it.
///
/// Go's `runtime.GOMAXPROCS(n)` with `n > 0`; `n` is clipped to 1,024. The number is not followed
/// any more.
pub fn set_procs(n: usize) -> usize {
    forked::check();
    ensure_started();
    let n = clipped(n);
    world::set_procs_if(n, Source::Asked, || true).unwrap_or(n)
}

/// Sets GOMAXPROCS to its default, and has changes of that followed. Go's
/// `runtime.SetDefaultGOMAXPROCS`.
pub fn set_default_procs() {
    forked::check();
    let settled = ensure_started();
    let n = clipped(settled.sight.look().procs);
    let _ = world::set_procs_if(n, Source::Default, || true);
    ask_starter();
}

/// Whether the number is the default.
pub(crate) fn is_default() -> bool {
    Source::current() == Source::Default
}

/// Whether it changes with the default.
pub(crate) fn is_followed() -> bool {
    is_default() && SCHEDULER.settled.get().is_some_and(|settled| settled.updates_procs)
}

/// What GOMAXPROCS would be if nobody had said a number.
#[must_use]
pub fn default_procs() -> usize {
    match SCHEDULER.settled.get() {
        Some(settled) => clipped(settled.sight.look().procs),
        None => clipped(look_once(&Root::system(), Containers::Count).procs),
    }
}

/// The number of processors and where it comes from, to put both back later.
#[derive(Debug)]
pub struct FormerProcs {
    procs: usize,
    source: Source,
}

impl FormerProcs {
    /// What holds now.
    #[must_use]
    pub fn remember() -> FormerProcs {
        ensure_started();
        FormerProcs { procs: SCHEDULER.procs() as usize, source: Source::current() }
    }

    /// Puts it back. A default is looked at anew.
    pub fn restore(&self) {
        match self.source {
            Source::Default => set_default_procs(),
            Source::Asked => drop(set_procs(self.procs)),
        }
    }
}
