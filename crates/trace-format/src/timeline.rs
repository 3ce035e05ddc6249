//! A trace's events as intervals: what each goroutine and processor did from when to when.

use crate::event::{Event, Kind};
use crate::order::{Context, Seen};
use crate::read::Generation;
use std::collections::HashMap;

/// What a goroutine does for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs on this processor.
    Runs(u64),
    /// It could, and waits for a processor.
    Runnable,
    /// It is in a call.
    Call,
    /// It waits for what the words say.
    Waits(String),
}

/// What belongs to no goroutine's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// A machine holds this processor.
    Processor(u64),
    /// The world is stopped, for the reason that the words say.
    Stopped(String),
    /// A collection is going on.
    Collection,
    /// A region of the user's.
    Region {
        /// The goroutine that it is a part of.
        goroutine: u64,
        /// Its name.
        name: String,
    },
}

/// A goroutine for whoever watches.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// Its number.
    pub id: u64,
    /// Its function.
    pub name: &'a str,
}

/// Who is told. Times are in nanoseconds.
pub trait Watch {
    /// A goroutine did `what` from then to then.
    fn did(&mut self, who: Who<'_>, what: &Doing, from: u64, to: u64);
    /// Something else went on.
    fn range(&mut self, range: &Range, from: u64, to: u64);
    /// GOMAXPROCS is this from now on.
    fn procs(&mut self, at: u64, procs: u64);
}

#[derive(Debug)]
struct Goroutine {
    name: String,
    doing: Doing,
    since: u64,
}

/// What is going on: told of every event by [`verify()`](crate::verify()), it tells a [`Watch`] of
/// every interval as soon as it has ended.
///
/// ```
/// use gosched_trace_format::{Doing, HEADER, Range, Timeline, Watch, Who, verify};
///
/// struct Runs(u64);
/// impl Watch for Runs {
///     fn did(&mut self, _: Who<'_>, what: &Doing, from: u64, to: u64) {
///         if matches!(what, Doing::Runs(_)) {
///             self.0 += to - from;
///         }
///     }
///     fn range(&mut self, _: &Range, _: u64, _: u64) {}
///     fn procs(&mut self, _: u64, _: u64) {}
/// }
///
/// let (mut timeline, mut runs) = (Timeline::default(), Runs(0));
/// verify(HEADER, |generation, seen| timeline.see(generation, seen, &mut runs)).unwrap();
/// timeline.end(&mut runs);
/// assert_eq!(runs.0, 0);
/// ```
#[derive(Debug, Default)]
pub struct Timeline {
    goroutines: HashMap<u64, Goroutine>,
    processors: HashMap<u64, u64>,
    stopped: HashMap<u64, (String, u64)>,
    collection: Option<u64>,
    regions: HashMap<u64, Vec<(String, u64)>>,
    last: u64,
}

impl Timeline {
    /// The next event, in order.
    pub fn see(&mut self, generation: &Generation<'_>, seen: &Seen, watch: &mut impl Watch) {
        let Event { kind, time, args } = seen.event;
        let Context { p, g } = seen.before;
        let now = generation.nanoseconds(time);
        self.last = self.last.max(now);
        let words = |id| generation.string(id).unwrap_or_default().to_owned();
        let p_now = seen.after.p.or(p).unwrap_or_default();
        match kind {
            Kind::GoCreate => {
                self.appears(args[0], name(generation, args[1]), Doing::Runnable, now)
            }
            Kind::GoStatus | Kind::GoStatusStack => {
                let doing = match args[2] {
                    2 => Doing::Runs(p_now),
                    3 => Doing::Call,
                    4 => Doing::Waits("unknown since before".into()),
                    _ => Doing::Runnable,
                };
                if !self.goroutines.contains_key(&args[0]) {
                    self.appears(args[0], name(generation, args[3]), doing, now);
                }
            }
            Kind::GoStart => self.changes(args[0], Doing::Runs(p_now), now, watch),
            Kind::GoUnblock => self.changes(args[0], Doing::Runnable, now, watch),
            Kind::ProcStart => {
                self.processors.insert(args[0], now);
            }
            Kind::ProcStatus if args[1] == 1 => {
                self.processors.entry(args[0]).or_insert(now);
            }
            Kind::ProcStop => self.processor_ends(p, now, watch),
            Kind::ProcSteal => self.processor_ends(Some(args[0]), now, watch),
            Kind::ProcsChange => watch.procs(now, args[0]),
            Kind::GCBegin => self.collection = Some(now),
            Kind::GCEnd => {
                if let Some(from) = self.collection.take() {
                    watch.range(&Range::Collection, from, now);
                }
            }
            _ => {}
        }
        let Some(g) = g else { return };
        match kind {
            Kind::GoStop => self.changes(g, Doing::Runnable, now, watch),
            Kind::GoBlock => self.changes(g, Doing::Waits(words(args[0])), now, watch),
            Kind::GoDestroy => self.vanishes(g, now, watch),
            Kind::GoSyscallBegin => self.changes(g, Doing::Call, now, watch),
            Kind::GoSyscallEnd => self.changes(g, Doing::Runs(p_now), now, watch),
            Kind::GoSyscallEndBlocked => self.changes(g, Doing::Runnable, now, watch),
            Kind::STWBegin => {
                self.stopped.insert(g, (words(args[0]), now));
            }
            Kind::STWEnd => {
                if let Some((why, from)) = self.stopped.remove(&g) {
                    watch.range(&Range::Stopped(why), from, now);
                }
            }
            Kind::UserRegionBegin => {
                self.regions.entry(g).or_default().push((words(args[1]), now));
            }
            Kind::UserRegionEnd => {
                if let Some((name, from)) = self.regions.get_mut(&g).and_then(Vec::pop) {
                    watch.range(&Range::Region { goroutine: g, name }, from, now);
                }
            }
            _ => {}
        }
    }

    /// The trace has ended: so does all that goes on.
    pub fn end(mut self, watch: &mut impl Watch) {
        let last = self.last;
        let all: Vec<u64> = self.goroutines.keys().copied().collect();
        all.into_iter().for_each(|g| self.vanishes(g, last, watch));
        let busy: Vec<u64> = self.processors.keys().copied().collect();
        busy.into_iter().for_each(|p| self.processor_ends(Some(p), last, watch));
    }

    fn appears(&mut self, g: u64, name: String, doing: Doing, now: u64) {
        self.goroutines.insert(g, Goroutine { name, doing, since: now });
    }

    fn changes(&mut self, g: u64, doing: Doing, now: u64, watch: &mut impl Watch) {
        let Some(known) = self.goroutines.get_mut(&g) else { return };
        let before = std::mem::replace(&mut known.doing, doing);
        let from = std::mem::replace(&mut known.since, now);
        watch.did(Who { id: g, name: &known.name }, &before, from, now.max(from));
    }

    fn vanishes(&mut self, g: u64, now: u64, watch: &mut impl Watch) {
        if let Some(Goroutine { name, doing, since }) = self.goroutines.remove(&g) {
            watch.did(Who { id: g, name: &name }, &doing, since, now.max(since));
        }
        self.regions.remove(&g);
    }

    fn processor_ends(&mut self, p: Option<u64>, now: u64, watch: &mut impl Watch) {
        let Some(p) = p else { return };
        if let Some(from) = self.processors.remove(&p) {
            watch.range(&Range::Processor(p), from, now.max(from));
        }
    }
}

/// The goroutine's function: the outermost frame of its first stack.
fn name(generation: &Generation<'_>, stack: u64) -> String {
    let frames = generation.stacks.get(&stack);
    let root = frames.and_then(|frames| frames.last()).map(|frame| frame.function.clone());
    root.unwrap_or_else(|| "?".into())
}
